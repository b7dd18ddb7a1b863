// SPDX-License-Identifier: Apache-2.0
// PostgreSQL for tests: looks into a database with psql, makes databases, starts a server of a test's own (by
// postgres.sh), a standby or PgBouncer, stops them, and puts a proxy in front of one that can cut connections at a chosen moment.

import { spawn, spawnSync } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { chmodSync, existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { connect, createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';

import { waitFor } from './wait.mjs';

const script = resolve(fileURLToPath(import.meta.url), '../postgres.sh');

/** psql itself where Debian has it: the `psql` in its place there looks for it first, which takes five times as long. */
function findPsql(folder = '/usr/lib/postgresql') {
  const versions = existsSync(folder) ? readdirSync(folder).sort((a, b) => Number(b) - Number(a)) : [];
  return versions.map((version) => join(folder, version, 'bin/psql')).find((path) => existsSync(path)) ?? 'psql';
}
const program = findPsql();

/** Rows as arrays of strings. */
export function psql(url, sql) {
  const result = spawnSync(program, ['-X', '-q', '-A', '-t', '-v', 'ON_ERROR_STOP=1', '-d', url, '-c', sql], {
    encoding: 'utf8',
    timeout: 30000,
    maxBuffer: 64 * 1024 * 1024,
  });
  if (result.error) throw result.error;
  if (result.status !== 0) throw new Error(`psql: ${result.stderr}`);
  return result.stdout.split('\n').filter((line) => line.length > 0).map((line) => line.split('|'));
}

/** A psql that stays: what it is told to do, it does in one session. */
export class Session {
  constructor(url) {
    this.said = '';
    this.child = spawn(program, ['-X', '-q', '-A', '-t', '-d', url], { stdio: ['pipe', 'pipe', 'inherit'] });
    this.child.stdout.setEncoding('utf8').on('data', (text) => (this.said += text));
  }

  async do(sql) {
    const mark = `done-${Math.random()}`;
    this.child.stdin.write(`${sql}\n\\echo ${mark}\n`);
    await waitFor(`psql: ${sql}`, () => this.said.includes(mark));
  }

  async end() {
    this.child.stdin.end();
    await new Promise((done) => this.child.on('close', done));
  }
}

/** A new, empty database on the server at `base` (a URL without a database); its URL. */
export function makeDatabase(base) {
  const name = `test_${randomBytes(8).toString('hex')}`;
  psql(`${base}/postgres`, `CREATE DATABASE ${name}`);
  return `${base}/${name}`;
}

const running = new Set();
process.on('exit', () => {
  for (const server of running) server.destroy();
});

/** A PostgreSQL server of the test's own. */
export class Postgres {
  /** With `primary`, another Postgres: a standby that follows it. */
  constructor(settings = [], { primary } = {}) {
    this.dir = mkdtempSync(join(tmpdir(), 'holdfast-postgres-'));
    const how = primary ? ['standby', this.dir, primary.port] : ['start', this.dir];
    this.url = this.script(...how, ...settings).trim();
    this.port = Number(new URL(this.url).port);
    running.add(this);
  }

  script(...args) {
    const result = spawnSync(script, args, { encoding: 'utf8', timeout: 60000 });
    if (result.error) throw result.error;
    if (result.status !== 0) throw new Error(`postgres.sh ${args.join(' ')}: ${result.stderr}`);
    return result.stdout;
  }

  restart(mode = 'fast', ...settings) {
    this.script('restart', this.dir, mode, ...settings);
  }

  /** The same without blocking this process, so that its clients can be seen to wait. */
  restartAsync(mode = 'fast') {
    return new Promise((done, fail) => {
      const child = spawn(script, ['restart', this.dir, mode], { stdio: 'ignore' });
      child.on('close', (status) => (status === 0 ? done() : fail(new Error('PostgreSQL did not restart'))));
    });
  }

  /** Ends it without asking, as a crash would. */
  kill() {
    this.script('stop', this.dir, 'immediate');
  }

  promote() {
    this.script('promote', this.dir);
  }

  sql(text, database = 'postgres') {
    return psql(`${this.url}/${database}`, text);
  }

  destroy() {
    running.delete(this);
    spawnSync(script, ['stop', this.dir, 'immediate'], { timeout: 60000 });
    rmSync(this.dir, { recursive: true, force: true });
  }
}

/** PgBouncer in session mode in front of a Postgres, run by the same user. */
export class Bouncer {
  constructor(postgres, port, settings = {}) {
    this.dir = mkdtempSync(join(tmpdir(), 'holdfast-pgbouncer-'));
    chmodSync(this.dir, 0o777);
    this.port = port;
    this.url = `postgres://postgres@127.0.0.1:${port}`;
    const options = {
      listen_addr: '127.0.0.1',
      listen_port: port,
      unix_socket_dir: '',
      auth_type: 'any',
      pool_mode: 'session',
      logfile: join(this.dir, 'log'),
      pidfile: join(this.dir, 'pid'),
      ...settings,
    };
    const lines = Object.entries(options).map(([name, value]) => `${name} = ${value}`);
    this.config = join(this.dir, 'pgbouncer.ini');
    writeFileSync(this.config, `[databases]\n* = host=127.0.0.1 port=${postgres.port} user=postgres\n[pgbouncer]\n${lines.join('\n')}\n`);
    running.add(this);
  }

  async start() {
    const result = spawnSync(script, ['run', 'pgbouncer', '-q', '-d', this.config], { encoding: 'utf8', timeout: 60000 });
    if (result.error) throw result.error;
    if (result.status !== 0) throw new Error(`pgbouncer: ${result.stdout}${result.stderr}`);
    // The file is there before its number is: and 0 would be this process's own group.
    const pidFile = join(this.dir, 'pid');
    this.pid = await waitFor('PgBouncer', async () => existsSync(pidFile) && Number(readFileSync(pidFile, 'utf8')));
    return this;
  }

  kill() {
    if (this.pid === undefined) return;
    process.kill(this.pid, 'SIGKILL');
    this.pid = undefined;
    rmSync(join(this.dir, 'pid'), { force: true });
  }

  destroy() {
    running.delete(this);
    this.kill();
    rmSync(this.dir, { recursive: true, force: true });
  }
}

/** Stands between a node and its PostgreSQL. `onCommit` is asked at every COMMIT: 'pass', 'lose-answer', 'lose-request' or
 * 'freeze', after which nothing passes any more and nobody is told. */
export class Proxy {
  constructor(port) {
    this.target = port;
    this.onCommit = () => 'pass';
    this.sockets = new Set();
    this.server = createServer((client) => this.serve(client));
  }

  async listen() {
    await new Promise((done) => this.server.listen(0, '127.0.0.1', done));
    this.port = this.server.address().port;
    return this;
  }

  serve(client) {
    const upstream = connect(this.target, '127.0.0.1');
    let silent = false;
    const end = () => {
      client.destroy();
      upstream.destroy();
      this.sockets.delete(client);
      this.sockets.delete(upstream);
    };
    for (const socket of [client, upstream]) {
      this.sockets.add(socket);
      socket.setNoDelay(true);
      socket.on('error', end).on('close', end);
    }
    client.on('data', (data) => {
      if (silent) return;
      // A prepared statement is named in the message that binds it.
      const fate = data.includes('\0commit\0') ? this.onCommit() : 'pass';
      if (fate === 'lose-request') return end();
      if (fate === 'freeze') {
        silent = true;
        return;
      }
      upstream.write(data);
      if (fate === 'lose-answer') {
        silent = true;
        setTimeout(end, 200); // long enough for the server to have committed
      }
    });
    upstream.on('data', (data) => {
      if (!silent) client.write(data);
    });
  }

  /** Cuts everything that is connected now. */
  cut() {
    for (const socket of this.sockets) socket.destroy();
  }

  close() {
    this.cut();
    this.server.close();
  }
}
