// SPDX-License-Identifier: Apache-2.0
// What a PromQL expression asks for, and whether a page of /metrics has it.

/** name → list of label sets, from the text format. */
export function readMetrics(text) {
  const series = new Map();
  for (const line of text.split('\n')) {
    const match = /^([a-z_]\w*)(?:\{([^}]*)\})? \S+$/i.exec(line);
    if (!match) continue;
    const labels = Object.fromEntries([...(match[2] ?? '').matchAll(/(\w+)="([^"]*)"/g)].map(([, key, value]) => [key, value]));
    if (!series.has(match[1])) series.set(match[1], []);
    series.get(match[1]).push(labels);
  }
  return series;
}

/** Labels that Prometheus adds by itself. */
export const TARGET_LABELS = ['job', 'instance'];

/** The selectors of an expression: [{name, matchers: [{label, operator, value}]}], without those of `up` and ALERTS. */
export function selectorsOf(expression) {
  return [...expression.matchAll(/\b(holdfast_\w+)(?:\{([^}]*)\})?/g)].map(([, name, inside = '']) => ({
    name,
    matchers: [...inside.matchAll(/(\w+)\s*(=~|!=|!~|=)\s*"([^"]*)"/g)].map(([, label, operator, value]) => ({ label, operator, value })),
  }));
}

export const groupingsOf = (expression) =>
  [...expression.matchAll(/\b(?:by|on|without|group_left|group_right)\s*\(([^)]*)\)/g)]
    .flatMap(([, labels]) => labels.split(',').map((label) => label.trim()).filter((label) => label !== ''));

/** What is wrong with an expression, as sentences: names and labels that do not exist. */
export function complaints(expression, series) {
  const found = [];
  const known = new Set([...TARGET_LABELS]);
  for (const { name, matchers } of selectorsOf(expression)) {
    const sets = series.get(name);
    if (!sets) {
      found.push(`${name} is not in /metrics`);
      continue;
    }
    for (const set of sets) Object.keys(set).forEach((label) => known.add(label));
    for (const { label, operator, value } of matchers) {
      if (TARGET_LABELS.includes(label)) continue;
      const values = operator.endsWith('~') ? value.split('|') : [value];
      for (const one of values) if (!sets.some((set) => set[label] === one)) found.push(`${name} has no ${label}="${one}"`);
    }
  }
  for (const label of groupingsOf(expression)) if (!known.has(label)) found.push(`no metric of the expression has the label ${label}`);
  return found;
}
