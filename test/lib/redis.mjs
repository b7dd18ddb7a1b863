// SPDX-License-Identifier: Apache-2.0
// A Redis server of a test's own, on a free port or a unix socket, that can be killed, frozen, flushed and started again
// empty at the same address; and a connection to it that does not block the test, so that traffic goes on meanwhile.

import { spawn, spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { connect as connectPlain } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { connect as connectTls } from 'node:tls';

import { freePort } from './server.mjs';
import { pause, waitFor, within } from './wait.mjs';

const running = new Set();
process.on('exit', () => {
  for (const server of running) server.destroy();
});

/** Takes one answer from `buffer` at `at`: [value, next], or undefined while it is not complete. Errors are values. */
function parse(buffer, at) {
  const end = buffer.indexOf('\r\n', at);
  if (end < 0) return undefined;
  const line = buffer.toString('utf8', at + 1, end);
  const next = end + 2;
  switch (buffer[at]) {
    case 0x2b: // +
      return [line, next];
    case 0x2d: // -
      return [new Error(line), next];
    case 0x3a: // :
      return [Number(line), next];
    case 0x24: { // $
      const size = Number(line);
      if (size < 0) return [null, next];
      return buffer.length < next + size + 2 ? undefined : [buffer.toString('latin1', next, next + size), next + size + 2];
    }
    case 0x2a: { // *
      if (Number(line) < 0) return [null, next];
      const list = [];
      let place = next;
      for (let i = 0; i < Number(line); i++) {
        const item = parse(buffer, place);
        if (item === undefined) return undefined;
        list.push(item[0]);
        place = item[1];
      }
      return [list, place];
    }
    default:
      throw new Error(`not an answer of Redis: ${buffer.toString('latin1', at, at + 40)}`);
  }
}

/** One connection. Strings come back as latin1, so that bit fields survive. */
class Connection {
  constructor(socket) {
    this.socket = socket;
    this.waiting = [];
    this.pending = Buffer.alloc(0);
    this.onMessage = undefined;
    socket.on('data', (data) => this.take(data));
    socket.on('error', (error) => this.end(error));
    socket.on('close', () => this.end(new Error('the connection to Redis was closed')));
  }

  take(data) {
    this.pending = Buffer.concat([this.pending, data]);
    let at = 0;
    for (let answer; at < this.pending.length && (answer = parse(this.pending, at)) !== undefined; ) {
      at = answer[1];
      const value = answer[0];
      if (this.onMessage && Array.isArray(value) && (value[0] === 'pmessage' || value[0] === 'message')) this.onMessage(value);
      else this.waiting.shift()?.done(value);
    }
    this.pending = this.pending.subarray(at);
  }

  end(error) {
    this.ended = error;
    for (const { fail } of this.waiting.splice(0)) fail(error);
  }

  send(words) {
    return new Promise((done, fail) => {
      if (this.ended) return fail(this.ended);
      this.waiting.push({ done, fail });
      const parts = words.map((word) => Buffer.from(String(word), 'latin1'));
      this.socket.write(Buffer.concat([
        Buffer.from(`*${parts.length}\r\n`),
        ...parts.flatMap((part) => [Buffer.from(`$${part.length}\r\n`), part, Buffer.from('\r\n')]),
      ]));
    });
  }
}

export class Redis {
  /**
   * `args`: more of redis-server's options; `tls`: {ca, key, cert}, files, for TLS instead of plain TCP; `auth`: the words of
   * the AUTH that the test's own connections need.
   */
  static async start({ args = [], tls, auth } = {}) {
    const redis = new Redis();
    redis.dir = mkdtempSync(join(tmpdir(), 'holdfast-redis-'));
    redis.port = await freePort();
    redis.socketPath = join(redis.dir, 'socket');
    redis.args = args;
    redis.tls = tls;
    redis.auth = auth;
    redis.address = `127.0.0.1:${redis.port}`;
    redis.url = `redis://${redis.address}`;
    running.add(redis);
    await redis.launch();
    return redis;
  }

  /** Empty: nothing is kept on disk. */
  async launch() {
    const { tls } = this;
    const ports = tls
      ? ['--port', 0, '--tls-port', this.port, '--tls-cert-file', tls.cert, '--tls-key-file', tls.key, '--tls-ca-cert-file', tls.ca, '--tls-auth-clients', 'no']
      : ['--port', this.port];
    this.child = spawn(
      'redis-server',
      [...ports, '--bind', '127.0.0.1', '--unixsocket', this.socketPath, '--save', '', '--appendonly', 'no', '--dir', this.dir, ...this.args].map(String),
      { stdio: 'ignore' },
    );
    this.exited = new Promise((done) => this.child.on('close', done));
    await waitFor('Redis to answer', async () => (await this.command('PING').catch(() => undefined)) === 'PONG', 30000);
  }

  open() {
    const socket = this.tls ? connectTls({ host: '127.0.0.1', port: this.port, rejectUnauthorized: false }) : connectPlain(this.port, '127.0.0.1');
    const connection = new Connection(socket);
    if (this.auth) connection.send(['AUTH', ...this.auth]).catch(() => {});
    return connection;
  }

  /** One command; an error of Redis is thrown. */
  async command(...words) {
    if (this.connection === undefined || this.connection.ended) {
      this.connection = this.open();
      this.connection.socket.unref();
    }
    const answer = await within(`Redis: ${words.slice(0, 2).join(' ')}`, this.connection.send(words), 30000);
    if (answer instanceof Error) throw answer;
    return answer;
  }

  /** Keeps every message of the channels that match: {at, channel, text, json}. */
  async listen(...patterns) {
    const connection = this.open();
    connection.socket.unref();
    const messages = [];
    connection.onMessage = (value) => {
      const text = Buffer.from(value.at(-1), 'latin1').toString('utf8');
      messages.push({ at: Date.now(), channel: value.at(-2), text, json: JSON.parse(text) });
    };
    const answer = await connection.send(['PSUBSCRIBE', ...patterns]);
    if (answer instanceof Error) throw answer;
    return { messages, close: () => connection.socket.destroy() };
  }

  /** All keys with a hash {key: value}: strings, hashes as objects, zsets as {member: score}. */
  async dump(pattern = '*') {
    const found = {};
    let cursor = '0';
    do {
      const [next, keys] = await this.command('SCAN', cursor, 'MATCH', pattern, 'COUNT', 1000);
      cursor = next;
      for (const key of keys) {
        const type = await this.command('TYPE', key);
        if (type === 'string') found[key] = await this.command('GET', key);
        else if (type === 'hash') found[key] = pairs(await this.command('HGETALL', key));
        else if (type === 'zset') found[key] = pairs(await this.command('ZRANGE', key, 0, -1, 'WITHSCORES'));
        else if (type !== 'none') found[key] = type;
      }
    } while (cursor !== '0');
    return found;
  }

  /** One command by redis-cli, which blocks; its answer as lines. */
  cli(...words) {
    const result = spawnSync('redis-cli', ['-p', String(this.port), ...words.map(String)], { encoding: 'utf8', timeout: 30000 });
    if (result.error) throw result.error;
    if (result.status !== 0) throw new Error(`redis-cli ${words.join(' ')}: ${result.stderr}`);
    return result.stdout.split('\n').filter((line) => line.length > 0);
  }

  freeze() {
    this.child.kill('SIGSTOP');
  }

  thaw() {
    this.child.kill('SIGCONT');
  }

  async kill() {
    this.child.kill('SIGKILL');
    await this.exited;
  }

  /** Killed, away for a while, and there again with nothing in it. */
  async restart(awayMs = 0) {
    await this.kill();
    await pause(awayMs);
    await this.launch();
  }

  destroy() {
    running.delete(this);
    this.connection?.socket.destroy();
    this.child?.kill('SIGKILL');
    rmSync(this.dir, { recursive: true, force: true });
  }
}

function pairs(list) {
  const found = {};
  for (let i = 0; i < list.length; i += 2) found[list[i]] = list[i + 1];
  return found;
}

function groupByBlock(seats) {
  const blocks = new Map();
  for (const seat of seats) blocks.set(seat.block, [...(blocks.get(seat.block) ?? []), seat]);
  return blocks;
}

/** The names of SPEC section 7 for one event, and what stands in them. */
export class Registry {
  constructor(redis, event, prefix = 'voelgoed') {
    this.redis = redis;
    this.event = event;
    this.org = event.organization.id;
    this.prefix = prefix;
    this.members = `${prefix}:org:${this.org}:event:${event.id}:seat_holds`;
    this.occupancy = `${prefix}:org:${this.org}:event:${event.id}:occupancy`;
  }

  lockKey(seat) {
    return `org:${this.org}:event:${this.event.id}:seat:${seat.seat_id ?? seat}`;
  }

  holdKey(seat) {
    return `${this.prefix}:org:${this.org}:seat:${seat.seat_id ?? seat}:hold`;
  }

  metaKey(hold) {
    return `${this.prefix}:org:${this.org}:hold:${hold.hold_id ?? hold}:meta`;
  }

  bitsKey(block) {
    return `${this.prefix}:org:${this.org}:event:${this.event.id}:seats_bf:${block}`;
  }

  async lock(seat) {
    const text = await this.redis.command('GET', this.lockKey(seat));
    return text === null ? null : JSON.parse(text);
  }

  /** Puts a lock there by hand, as a node that died after taking it would have left it. */
  plantLock(seat, { hold, user, agoMs = 0, liveMs = 60000, ...rest }) {
    const iso = (ms) => new Date(ms).toISOString().replace(/\.\d+Z$/, 'Z');
    const value = { user_id: user, cart_token: 'planted', hold_id: hold, expires_at: iso(Date.now() - agoMs + 300000), held_at: iso(Date.now() - agoMs), ...rest };
    return this.redis.command('SET', this.lockKey(seat), JSON.stringify(value), 'PX', liveMs);
  }

  async memberList() {
    const raw = await this.redis.command('ZRANGE', this.members, 0, -1, 'WITHSCORES');
    const list = [];
    for (let i = 0; i < raw.length; i += 2) {
      const [seat, hold, user, ...iso] = raw[i].split(':');
      list.push({ text: raw[i], seat, hold, user, iso: iso.join(':'), score: Number(raw[i + 1]) });
    }
    return list;
  }

  /** The bits of a block, as a list of 0 and 1, padded to `count`. */
  async bits(block, count) {
    const bytes = Buffer.from((await this.redis.command('GET', this.bitsKey(block))) ?? '', 'latin1');
    return Array.from({ length: count }, (_, i) => ((bytes[i >> 3] ?? 0) >> (7 - (i & 7))) & 1);
  }

  /**
   * What is wrong with the keys of this event, as sentences: compared with the active holds of the store ({hold, seat, user,
   * until}, seconds) and with what the seats are. A hold about to end has nothing to be judged by.
   */
  async faults(holds, seats) {
    const wrong = [];
    const nowSeconds = Date.now() / 1000;
    const bySeat = new Map(holds.map((hold) => [hold.seat, hold]));
    const members = new Map((await this.memberList()).map((member) => [member.hold, member]));
    const locks = await this.redis.dump(this.lockKey('*'));
    for (const hold of holds) {
      const lock = locks[this.lockKey(hold.seat)];
      if (lock === undefined) wrong.push(`no lock for seat ${hold.seat}`);
      else if (JSON.parse(lock).hold_id !== hold.hold) wrong.push(`the lock of seat ${hold.seat} is of another hold`);
      const member = members.get(hold.hold);
      if (member === undefined) wrong.push(`no member for hold ${hold.hold}`);
      else if (member.seat !== hold.seat || member.user !== hold.user || Math.abs(member.score - hold.until) > 1) wrong.push(`member ${member.text} is not ${JSON.stringify(hold)}`);
      if (hold.until < nowSeconds + 2) continue;
      const short = await this.redis.command('GET', this.holdKey(hold.seat));
      if (short === null || !short.startsWith(`${hold.hold}:${hold.user}:`)) wrong.push(`${this.holdKey(hold.seat)} is ${short}`);
      if ((await this.redis.command('HGET', this.metaKey(hold.hold), 'seat_id')) !== hold.seat) wrong.push(`${this.metaKey(hold.hold)} is missing`);
    }
    for (const key of Object.keys(locks)) {
      if (!bySeat.has(key.split(':').at(-1))) wrong.push(`a lock of nobody's: ${key}`);
    }
    for (const [hold, member] of members) if (bySeat.get(member.seat)?.hold !== hold) wrong.push(`a member of nobody's: ${member.text}`);
    for (const [name, list] of groupByBlock(seats)) {
      const bits = await this.bits(name, Math.max(...list.map((seat) => seat.bit)) + 1);
      for (const seat of list) {
        if (bits[seat.bit] !== Number(seat.status !== 'available')) wrong.push(`bit ${seat.bit} of ${name} is ${bits[seat.bit]}, the seat ${seat.status}`);
      }
    }
    return wrong;
  }
}
