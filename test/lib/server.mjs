// SPDX-License-Identifier: Apache-2.0
// Starts real servers: each on a port of its own on 127.0.0.1, with a directory of its own, and stops every one of them.
//  1. A server is ready when it has printed its one line; the address is taken from that line.
//  2. stop() sends SIGTERM and requires exit status 0; a server that does not end is killed and the test fails.
//  3. What a server writes is kept; sanitizer reports or a failed CHECK in it fail the test that stops it, and all of it
//     is shown when the test file fails.
//  4. With HOLDFAST_TEST_STORE_URL=postgres://… (without a database) every server that is not told its store gets a new
//     database there instead of a file.
//  5. With HOLDFAST_TEST_ORDER_URL=kafka://… besides, such a server has topics of its own there, and is ready when it has its
//     partitions.
//  6. Whatever a test forgets is killed when the file ends, by its own process id.

import { spawn, spawnSync } from 'node:child_process';
import { randomBytes, randomInt } from 'node:crypto';
import { existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';

import { makeDatabase, psql } from './postgres.mjs';
import { sqlite } from './sqlite.mjs';
import { makeToken, claimsFor } from './token.mjs';
import { within, waitFor } from './wait.mjs';

const root = resolve(fileURLToPath(import.meta.url), '../../..');
export const binary = resolve(process.env.HOLDFAST_BIN ?? join(root, 'build/holdfast'));
export const ORDER_PARTITIONS = 4; // of a test's own topic
const START_LIMIT_MS = 60000;
export const STOP_LIMIT_MS = 60000;
const ALARMS = /AddressSanitizer|LeakSanitizer|ThreadSanitizer|UndefinedBehaviorSanitizer|runtime error:|\bCHECK\b/;
const OUTPUT_SHOWN = 6000;

const alive = new Set();
const directories = new Set();
const outputs = [];

// A file that is stopped from outside ends what it started, too.
for (const signal of ['SIGTERM', 'SIGINT']) process.on(signal, () => process.exit(1));

process.on('exit', (code) => {
  for (const child of alive) {
    try {
      child.kill('SIGKILL');
    } catch {
      /* it has just ended by itself */
    }
  }
  if (code !== 0) {
    for (const server of outputs) {
      const text = server.output();
      if (text.length > 0) console.error(`--- output of a server in ${server.dir}\n${text.slice(-OUTPUT_SHOWN)}`);
    }
  }
  if (process.env.HOLDFAST_KEEP) return;
  for (const directory of directories) rmSync(directory, { recursive: true, force: true });
});

/** An empty directory that is removed when the file ends (kept with HOLDFAST_KEEP=1). */
export function tempDir() {
  const directory = mkdtempSync(join(tmpdir(), 'holdfast-test-'));
  directories.add(directory);
  return directory;
}

/** The environment of a child: ours, without any HOLDFAST_ setting, plus what the test wants. */
export function childEnv(extra = {}) {
  const env = {};
  for (const [name, value] of Object.entries(process.env)) if (!name.startsWith('HOLDFAST_')) env[name] = value;
  return { ...env, ...extra };
}

/** Runs the binary to its end: {status, signal, stdout, stderr}. Never throws for a bad exit status. */
export function run(args, { env, cwd, input, limitMs = 60000, uid, gid } = {}) {
  const result = spawnSync(binary, args, {
    cwd: cwd ?? tempDir(),
    env: childEnv(env),
    input,
    timeout: limitMs,
    killSignal: 'SIGKILL',
    encoding: 'utf8',
    maxBuffer: 256 * 1024 * 1024,
    uid,
    gid,
  });
  if (result.error && result.error.code !== 'EPIPE') throw result.error;
  if (ALARMS.test(result.stderr)) throw new Error(`holdfast ${args.join(' ')}:\n${result.stderr.slice(-OUTPUT_SHOWN)}`);
  return { status: result.status, signal: result.signal, stdout: result.stdout, stderr: result.stderr };
}

/** The same without blocking, for commands that talk to a server of this process. */
export function runAsync(args, { env, cwd, input, limitMs = 60000 } = {}) {
  return new Promise((resolveRun, reject) => {
    const child = spawn(binary, args, { cwd: cwd ?? tempDir(), env: childEnv(env), stdio: ['pipe', 'pipe', 'pipe'] });
    alive.add(child);
    let stdout = '';
    let stderr = '';
    const timer = setTimeout(() => child.kill('SIGKILL'), limitMs);
    child.stdout.setEncoding('utf8').on('data', (text) => (stdout += text));
    child.stderr.setEncoding('utf8').on('data', (text) => (stderr += text));
    child.stdin.on('error', () => {});
    child.stdin.end(input ?? '');
    child.on('error', reject);
    child.on('close', (status, signal) => {
      clearTimeout(timer);
      alive.delete(child);
      if (ALARMS.test(stderr)) reject(new Error(`holdfast ${args.join(' ')}:\n${stderr.slice(-OUTPUT_SHOWN)}`));
      else resolveRun({ status, signal, stdout, stderr });
    });
  });
}

/**
 * A free port for a server that must come back to it. The system gives ports from 32768 on to whoever asks for any; this
 * one is below, so that nobody is given it in between.
 */
export function freePort() {
  return new Promise((resolvePort, reject) => {
    const attempt = (left) => {
      const port = 20000 + randomInt(12000);
      const probe = createServer();
      probe.on('error', (error) => (left > 0 ? attempt(left - 1) : reject(error)));
      probe.listen(port, '127.0.0.1', () => probe.close(() => resolvePort(port)));
    };
    attempt(50);
  });
}

export class Server {
  constructor(options) {
    this.options = options;
    this.dir = options.dir ?? tempDir();
    this.database = options.database ?? join(this.dir, 'holdfast.db');
    const base = process.env.HOLDFAST_TEST_STORE_URL;
    this.store = options.store ?? (base && !options.database ? makeDatabase(base) : `sqlite:${this.database}`);
    const order = process.env.HOLDFAST_TEST_ORDER_URL;
    if (order && this.store.startsWith('postgres:') && options.store === undefined) {
      this.orderPrefix = `test-${randomBytes(8).toString('hex')}`;
      // Callers are let wait: what is tested is what they are answered, not how long a busy machine takes.
      this.orderArgs = ['--order', order, '--order-prefix', this.orderPrefix, '--order-partitions', String(ORDER_PARTITIONS),
        '--node-name', 'node', '--order-wait', '60', '--order-events', 'off'];
    }
    this.secretFile = join(this.dir, 'secret');
    this.secret = options.secret ?? randomBytes(32).toString('hex');
    this.text = '';
    mkdirSync(this.dir, { recursive: true });
    if (existsSync(this.secretFile) === false) writeFileSync(this.secretFile, this.secret, { mode: 0o600 });
    outputs.push(this);
  }

  output() {
    return this.text;
  }

  arguments() {
    const { args = [], keyArgs = ['--jwt-secret-file', this.secretFile] } = this.options;
    return [
      'serve',
      '--listen',
      this.options.listen ?? '127.0.0.1:0',
      '--store',
      this.store,
      ...keyArgs,
      ...(this.orderArgs ?? []),
      ...args,
    ];
  }

  /** Starts the process; resolves when it is ready, rejects when it ends before. */
  async launch() {
    const { env, wrap, uid, gid, program = binary } = this.options;
    const command = wrap ? [...wrap, program, ...this.arguments()] : [program, ...this.arguments()];
    const child = spawn(command[0], command.slice(1), {
      cwd: this.dir,
      env: childEnv(env),
      stdio: ['ignore', 'pipe', 'pipe'],
      uid,
      gid,
    });
    this.child = child;
    this.ready = false;
    alive.add(child);
    this.exited = new Promise((done) => {
      child.on('close', (status, signal) => {
        alive.delete(child);
        done({ status, signal });
      });
    });
    const ready = new Promise((done, fail) => {
      let out = '';
      const look = (text) => {
        this.text += text;
        if (this.ready) return;
        out += text;
        const line = out.split('\n').find((candidate, index, all) => index < all.length - 1 && /ready|listening/i.test(candidate)
          && /127\.0\.0\.1:(\d+)/.test(candidate));
        if (line) {
          this.ready = true;
          this.readyLine = line;
          done(Number(/127\.0\.0\.1:(\d+)/.exec(line)[1]));
        }
      };
      child.stdout.setEncoding('utf8').on('data', look);
      child.stderr.setEncoding('utf8').on('data', look);
      child.on('error', fail);
      this.exited.then(({ status, signal }) =>
        fail(new Error(`the server ended before it was ready (status ${status}, signal ${signal}):\n${this.text.slice(-OUTPUT_SHOWN)}`)),
      );
    });
    ready.catch(() => {});
    this.port = await within('the ready line of a server', ready, START_LIMIT_MS).catch((error) => {
      child.kill('SIGKILL');
      throw new Error(`${error.message}\n${this.text.slice(-OUTPUT_SHOWN)}`);
    });
    this.url = `http://127.0.0.1:${this.port}`;
    if (this.orderArgs) await this.hasPartitions();
    return this;
  }

  hasPartitions() {
    return waitFor('the node to have its partitions', async () => {
      const metrics = await (await fetch(`${this.url}/metrics`)).text();
      return metrics.includes(`\nholdfast_order_partitions ${ORDER_PARTITIONS}\n`);
    });
  }

  get pid() {
    return this.child.pid;
  }

  /** SIGTERM; the server must end by itself with status 0 and without an alarm in what it wrote. */
  async stop() {
    if (!alive.has(this.child)) {
      const { status, signal } = await this.exited;
      this.checkOutput();
      throw new Error(`the server had ended before stop() (status ${status}, signal ${signal})`);
    }
    this.child.kill('SIGTERM');
    let end;
    try {
      end = await within('the server to end after SIGTERM', this.exited, STOP_LIMIT_MS);
    } catch (error) {
      this.child.kill('SIGKILL');
      throw error;
    }
    this.checkOutput();
    if (end.status !== 0) throw new Error(`the server ended with status ${end.status}, signal ${end.signal}`);
  }

  /** SIGKILL, as the power going off; resolves when the process is gone. */
  async kill9() {
    this.child.kill('SIGKILL');
    await this.exited;
    this.checkOutput();
  }

  checkOutput() {
    const alarm = ALARMS.exec(this.text);
    if (alarm) throw new Error(`the server reported trouble:\n${this.text.slice(Math.max(0, alarm.index - 200), alarm.index + OUTPUT_SHOWN)}`);
  }

  /** A token signed with this server's secret. */
  token({ org, user, role, ...rest }) {
    return makeToken(this.secret, claimsFor({ org, user, role, ...rest }));
  }

  /** `holdfast verify` on this server's store; the server need not run. */
  verify() {
    return runAsync(['verify', '--store', this.store]);
  }

  /** Rows of this server's store, as arrays of strings. */
  select(sql) {
    return this.store.startsWith('sqlite:') ? sqlite(this.database, sql) : psql(this.store, sql);
  }
}

export async function start(options = {}) {
  const server = new Server(options);
  await server.launch();
  return server;
}
