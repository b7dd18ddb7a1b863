// SPDX-License-Identifier: Apache-2.0
// The part of YAML that the files in ops/ use, and nothing else: anything beyond it is an error, with its line. Maps and
// lists by indentation, plain and quoted scalars, folded text (>-), lists in brackets, empty maps, comments. Scalars stay
// strings, but for true, false and empty ones.

class Reader {
  constructor(text, name) {
    this.name = name;
    this.raw = text.split('\n');
    this.lines = [];
    this.raw.forEach((line, index) => {
      if (line.includes('\t')) this.fail(index + 1, 'a tab');
      if (line.trim() === '' || line.trim().startsWith('#')) return;
      this.lines.push({ indent: line.search(/\S/), text: line.trim(), number: index + 1 });
    });
    this.at = 0;
  }

  fail(number, why) {
    throw new Error(`${this.name}:${number}: ${why}`);
  }

  get line() {
    return this.lines[this.at];
  }

  node(indent) {
    if (this.line.indent !== indent) this.fail(this.line.number, `indented by ${this.line.indent}, not ${indent}`);
    return this.line.text.startsWith('- ') || this.line.text === '-' ? this.list(indent) : this.map(indent);
  }

  list(indent) {
    const out = [];
    while (this.line && this.line.indent === indent && /^-( |$)/.test(this.line.text)) {
      const { text, number } = this.line;
      const rest = text.slice(1).trimStart();
      if (rest !== '' && isEntry(rest)) {
        // A map that begins on the dash's line: its keys stand where the first one does.
        this.lines[this.at] = { indent: indent + text.length - rest.length, text: rest, number };
        out.push(this.map(indent + text.length - rest.length));
      } else {
        this.at++;
        out.push(rest === '' ? this.node(this.line.indent) : this.scalar(rest, number));
      }
    }
    return out;
  }

  map(indent) {
    const out = {};
    while (this.line && this.line.indent === indent) {
      const { text, number } = this.line;
      const match = /^("[^"]*"|[^\s"'#[{][^:]*?):(?: +(.*))?$/.exec(text);
      if (!match) this.fail(number, `not understood: ${text}`);
      const key = match[1].replace(/^"(.*)"$/, '$1');
      if (key in out) this.fail(number, `${key} twice`);
      this.at++;
      out[key] = this.value(match[2] ?? '', indent, number);
    }
    if (this.line && this.line.indent > indent) this.fail(this.line.number, 'indented too far');
    return out;
  }

  value(rest, indent, number) {
    if (rest === '>-') return this.folded(indent, number);
    if (rest !== '') return this.scalar(rest, number);
    if (this.line && (this.line.indent > indent || (this.line.indent === indent && this.line.text.startsWith('- ')))) {
      return this.node(this.line.indent);
    }
    return '';
  }

  folded(indent, number) {
    const parts = [];
    for (let i = number; i < this.raw.length && (this.raw[i].trim() === '' || this.raw[i].search(/\S/) > indent); i++) {
      if (this.raw[i].trim() !== '') parts.push(this.raw[i].trim());
    }
    while (this.line && this.line.indent > indent) this.at++;
    return parts.join(' ');
  }

  scalar(text, number) {
    if (text === '{}') return {};
    if (text.startsWith('[')) return this.flow(text, number);
    if (text.startsWith('"')) {
      if (!/^"(\\.|[^"\\])*"$/.test(text)) this.fail(number, `not understood: ${text}`);
      return JSON.parse(text);
    }
    if (text.startsWith("'")) {
      if (!/^'([^']|'')*'$/.test(text)) this.fail(number, `not understood: ${text}`);
      return text.slice(1, -1).replaceAll("''", "'");
    }
    if (/^[&*!|>{}@`%]/.test(text) || text.includes(' #') || /: /.test(text)) this.fail(number, `not understood: ${text}`);
    return text === 'true' ? true : text === 'false' ? false : text;
  }

  flow(text, number) {
    if (!text.endsWith(']')) this.fail(number, 'a list that goes on');
    const inside = text.slice(1, -1).trim();
    const parts = inside === '' ? [] : inside.match(/"(?:\\.|[^"\\])*"|[^,]+/g).map((part) => part.trim()).filter((part) => part !== '');
    return parts.map((part) => this.scalar(part, number));
  }
}

const isEntry = (text) => /^("[^"]*"|[^\s"'#[{][^:]*?):( |$)/.test(text);

export function parseYaml(text, name = 'yaml') {
  const reader = new Reader(text, name);
  const out = reader.line ? reader.node(0) : {};
  if (reader.line) reader.fail(reader.line.number, 'does not belong to what stands before it');
  return out;
}
