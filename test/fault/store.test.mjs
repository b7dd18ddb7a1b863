// SPDX-License-Identifier: Apache-2.0
// A store in trouble: no room left, read-only, corrupted, newer, or taken by another server. While it lasts nothing is
// acknowledged; when it ends, service goes on; and a server that cannot start says why in one sentence.

import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { chmodSync, chownSync, closeSync, copyFileSync, existsSync, mkdirSync, openSync, readFileSync, readdirSync, statSync, truncateSync, writeFileSync, writeSync } from 'node:fs';
import { connect, createServer } from 'node:net';
import { join } from 'node:path';
import { after, describe, it } from 'node:test';

import { fails, ok, send } from '../lib/client.mjs';
import { rawRequest, Wire } from '../lib/raw.mjs';
import { binary, run, Server, start, tempDir } from '../lib/server.mjs';
import { sqliteWrite } from '../lib/sqlite.mjs';
import { pause, waitFor, within } from '../lib/wait.mjs';
import { block, importDocument, importInto, layoutOf, World } from '../lib/world.mjs';

/** Runs serve where it must not come up: exit status not 0, one sentence, soon. */
function refuses(args, options = {}) {
  const result = run(['serve', ...args], options);
  assert.equal(result.signal, null, `it ended by itself, not by ${result.signal}:\n${result.stdout}${result.stderr}`);
  assert.ok(result.status !== 0 && result.status !== null, `status ${result.status}`);
  // The log may have told of a migration before; besides it there is one sentence.
  const lines = result.stderr.split('\n').filter((line) => line.trim().length > 0 && !line.startsWith('{"time":'));
  assert.equal(lines.length, 1, `one sentence, not ${lines.length} lines:\n${result.stderr}`);
  assert.ok(lines[0].length > 15 && lines[0].length < 400, lines[0]);
  assert.equal(result.stdout.trim(), '');
  return lines[0];
}

describe('store in trouble', { concurrency: 4 }, () => {
  const running = new Set();
  after(async () => {
    for (const server of running) await server.kill9();
  });
  const begin = async (options) => {
    const server = await start(options);
    running.add(server);
    return server;
  };
  const finish = async (server) => {
    running.delete(server);
    await server.stop();
    const proof = await server.verify();
    assert.equal(proof.status, 0, proof.stdout + proof.stderr);
  };

  /** Fills until refused, checks what a refusal must be, then lets go and waits for service. */
  const outage = async (server, stopRoom, giveRoom) => {
    const organization = await new World(server).organization();
    const event = await organization.event({ layout: layoutOf(block('A', 1, Array(40).fill(100))) });
    const buyer = organization.buyer();
    const before1 = await event.hold(buyer, event.seats[0]);
    await stopRoom();
    const granted = new Set([event.seats[0].seat_id]);
    const refused = await waitFor('writes to be refused', async () => {
      for (let index = 1; index < event.seats.length - 100; index += 40) {
        const seats = event.seats.slice(index, index + 40).filter((seat) => !granted.has(seat.seat_id));
        if (seats.length < 2) continue;
        const response = await event.holdMany(organization.buyer(), seats);
        if (response.status === 201) for (const seat of seats) granted.add(seat.seat_id);
        else return response;
      }
      return undefined;
    });
    fails(refused, 503, 'store_unavailable');
    // Reads go on, and show nothing that was not committed.
    const heldNow = async () => new Set((await event.list()).filter((seat) => seat.status === 'held').map((seat) => seat.seat_id));
    assert.deepEqual(await heldNow(), granted);
    // A smaller write may still find room; whatever is not acknowledged is refused in the same clear way.
    for (const seat of event.seats.slice(3970, 3980)) {
      const response = await event.reserve(organization.buyer(), seat);
      if (response.status === 201) granted.add(seat.seat_id);
      else fails(response, 503, 'store_unavailable');
    }
    const release = await buyer.del(`/api/holds/${before1.hold_id}`);
    if (release.status !== 200) fails(release, 503, 'store_unavailable');
    else granted.delete(event.seats[0].seat_id);
    assert.deepEqual(await heldNow(), granted);
    await giveRoom();
    await waitFor('service again', async () => (await event.reserve(buyer, event.seats[3991])).status === 201, undefined, 200);
    ok(await buyer.del(`/api/holds/${before1.hold_id}`));
    assert.equal((await send(`${server.url}/readyz`)).status, 200);
    granted.delete(event.seats[0].seat_id);
    granted.add(event.seats[3991].seat_id);
    assert.deepEqual(await heldNow(), granted, 'acknowledged holds and nothing else');
    return event;
  };

  const prlimit = spawnSync('prlimit', ['--version']).status === 0;
  it('a file that may not grow: 503 while it lasts, then service again', { skip: prlimit ? false : 'needs prlimit' }, async () => {
    const server = await begin({ wrap: ['/bin/sh', '-c', 'trap "" XFSZ; exec "$0" "$@"'] });
    const limit = (size) => {
      const result = spawnSync('prlimit', ['--pid', String(server.pid), `--fsize=${size}:unlimited`], { encoding: 'utf8' });
      assert.equal(result.status, 0, result.stderr);
    };
    await outage(server, () => {
      const sizes = ['', '-wal'].map((tail) => server.database + tail).filter(existsSync).map((file) => statSync(file).size);
      limit(Math.max(...sizes) + 32768);
    }, () => limit('unlimited'));
    await finish(server);
  });

  const mounts = process.getuid() === 0 && (() => {
    const probe = tempDir();
    if (spawnSync('mount', ['-t', 'tmpfs', '-o', 'size=64k', 'tmpfs', probe]).status !== 0) return false;
    return spawnSync('umount', [probe]).status === 0;
  })();
  it('a full disk: 503 while it lasts, then service again', { skip: mounts ? false : 'needs the right to mount' }, async () => {
    const dir = tempDir();
    assert.equal(spawnSync('mount', ['-t', 'tmpfs', '-o', 'size=24m', 'tmpfs', dir]).status, 0);
    try {
      const server = await begin({ dir });
      const ballast = join(dir, 'ballast');
      await outage(server, () => {
        spawnSync('dd', ['if=/dev/zero', `of=${ballast}`, 'bs=64k']);
      }, () => truncateSync(ballast, 0));
      await finish(server);
    } finally {
      spawnSync('umount', ['-l', dir]);
    }
  });

  it('a read-only database refuses to start or refuses to write, and works when it is writable again', async () => {
    const dir = tempDir();
    const database = join(dir, 'holdfast.db');
    const made = importInto(database, importDocument({ layout: layoutOf(block('A', 1, [5])) }));
    const organization = made.organization_id;
    const owner = process.getuid() === 0 ? { uid: 65534, gid: 65534 } : {};
    const secretFile = join(dir, 'secret');
    const program = join(dir, 'holdfast'); // where another user may run it, wherever the project lies
    copyFileSync(binary, program);
    const server = new Server({ dir, database, program, ...owner });
    for (const file of [database, secretFile]) chmodSync(file, 0o444);
    chmodSync(dir, 0o555);
    let came = true;
    try {
      await server.launch();
    } catch (error) {
      came = false;
      assert.match(error.message, /status [1-9]/, 'a clean refusal');
    }
    if (came) {
      const world = new World(server);
      const caller = world.caller('buyer', organization);
      const seats = ok(await caller.get(`/api/events/${made.event_id}/seats`));
      fails(await caller.post(`/api/events/${made.event_id}/seats/${seats[0].seat_id}/reserve`), 503, 'store_unavailable');
      await server.stop();
    } else {
      const lines = server.output().split('\n').filter((line) => line.trim().length > 0);
      assert.equal(lines.length, 1, server.output());
    }
    chmodSync(dir, 0o755);
    chmodSync(database, 0o644);
    if (owner.uid) for (const file of [dir, ...readdirSync(dir).map((name) => join(dir, name))]) chownSync(file, owner.uid, owner.gid);
    await server.launch();
    const caller = new World(server).caller('buyer', organization);
    const seats = ok(await caller.get(`/api/events/${made.event_id}/seats`));
    ok(await caller.post(`/api/events/${made.event_id}/seats/${seats[0].seat_id}/reserve`), 201);
    await server.stop();
  });

  it('a second server on the same file refuses, and the first goes on', async () => {
    const server = await begin();
    const organization = await new World(server).organization();
    const event = await organization.event();
    const said = refuses(['--listen', '127.0.0.1:0', '--store', `sqlite:${server.database}`, '--jwt-secret-file', server.secretFile]);
    assert.match(said, /use|lock|another/i);
    ok(await event.reserve(organization.buyer(), event.seats[0]), 201);
    const blocked = run(['import', '--store', `sqlite:${server.database}`, '-'], { input: JSON.stringify(importDocument()) });
    assert.ok(blocked.status === 0 || /^holdfast: .*use/m.test(blocked.stderr), blocked.stderr);
    await finish(server);
    // The lock dies with its owner.
    const next = await begin({ dir: server.dir, database: server.database, secret: server.secret });
    await finish(next);
  });

  it('a file that is no database, a damaged one, and a newer one are refused', () => {
    const dir = tempDir();
    const good = join(dir, 'good.db');
    importInto(good, importDocument({ layout: layoutOf(block('A', 1, Array(20).fill(50))) }));
    const secret = join(dir, 'secret');
    writeFileSync(secret, 'x'.repeat(64), { mode: 0o600 });
    const tryWith = (name, damage) => {
      const file = join(dir, name);
      copyFileSync(good, file);
      damage(file);
      return refuses(['--listen', '127.0.0.1:0', '--store', `sqlite:${file}`, '--jwt-secret-file', secret]);
    };
    const overwrite = (file, at, bytes) => {
      const handle = openSync(file, 'r+');
      writeSync(handle, bytes, 0, bytes.length, at);
      closeSync(handle);
    };
    assert.match(tryWith('text.db', (file) => writeFileSync(file, 'This is not a database. '.repeat(500))), /corrupt|not a database|damaged/i);
    tryWith('head.db', (file) => overwrite(file, 0, Buffer.alloc(100, 0x5a)));
    tryWith('schema.db', (file) => overwrite(file, 100, Buffer.alloc(3996, 0xa5)));
    tryWith('short.db', (file) => truncateSync(file, 4096 * 3));
    assert.match(tryWith('newer.db', (file) => sqliteWrite(file, 'PRAGMA user_version = 99999')), /newer/i);
    for (const name of ['head.db', 'schema.db', 'newer.db']) {
      assert.notEqual(run(['verify', '--store', `sqlite:${join(dir, name)}`]).status, 0, `verify refuses ${name}`);
      assert.notEqual(run(['migrate', '--store', `sqlite:${join(dir, name)}`]).status, 0, `migrate refuses ${name}`);
    }
  });

  it('pages damaged in the middle are found by verify', () => {
    const dir = tempDir();
    const file = join(dir, 'middle.db');
    importInto(file, importDocument({ layout: layoutOf(block('A', 1, Array(100).fill(50))) }));
    assert.equal(run(['verify', '--store', `sqlite:${file}`]).status, 0);
    const size = statSync(file).size;
    const handle = openSync(file, 'r+');
    for (let at = Math.floor(size / 2 / 4096) * 4096; at < size - 4096; at += 4096 * 8) writeSync(handle, Buffer.alloc(4096, 0xcc), 0, 4096, at);
    closeSync(handle);
    assert.equal(run(['verify', '--store', `sqlite:${file}`]).status, 1);
  });

  it('a directory that does not exist and a path that is a directory are refused', () => {
    const dir = tempDir();
    mkdirSync(join(dir, 'folder.db'));
    const secret = join(dir, 'secret');
    writeFileSync(secret, 'x'.repeat(64), { mode: 0o600 });
    for (const path of [join(dir, 'no/such/place/holdfast.db'), join(dir, 'folder.db')]) {
      refuses(['--listen', '127.0.0.1:0', '--store', `sqlite:${path}`, '--jwt-secret-file', secret]);
    }
  });

  it('a port in use is refused with its number', async () => {
    const taken = createServer().listen(0, '127.0.0.1');
    await new Promise((resolve) => taken.once('listening', resolve));
    const { port } = taken.address();
    try {
      const said = refuses(['--listen', `127.0.0.1:${port}`]);
      assert.ok(said.includes(String(port)), said);
    } finally {
      taken.close();
    }
  });

  it('bad options are refused with the option\'s name', () => {
    const dir = tempDir();
    const secret = join(dir, 'secret');
    writeFileSync(secret, 'x'.repeat(64), { mode: 0o600 });
    const key = join(dir, 'key.pem');
    writeFileSync(key, 'no key at all');
    const cases = [
      [['--no-such-option'], /no-such-option/],
      [['--listen', 'nowhere'], /listen|nowhere/],
      [['--listen', '127.0.0.1:99999'], /listen|99999/],
      [['--listen', '127.0.0.1:-1'], /listen|-1/],
      [['--listen'], /listen/],
      [['--store', 'mysql://x'], /mysql|store/],
      [['--store', ''], /store/],
      [['--store', 'mysql://localhost/x'], /not a store/],
      [['--warm', 'memcached://127.0.0.1'], /Redis must begin with/],
      [['--warm', 'redis://127.0.0.1:99999'], /Redis has a port/],
      [['--warm', ''], /warm/],
      [['--order', 'kafka://127.0.0.1'], /kafka|order/],
      [['--payments', 'stripe'], /stripe|payments/],
      [['--payments', 'monopoly'], /monopoly|payments/],
      [['--jwt-secret-file', join(dir, 'missing')], /missing|secret/],
      [['--jwt-secret-file', dir], /secret|directory/],
      [['--jwt-public-key', key], /key/],
      [['--jwt-secret-file', secret, '--jwt-public-key', key], /jwt/],
      [['--config', join(dir, 'missing.conf')], /missing\.conf|config/],
      [['--http-loops', '0'], /http-loops/],
      [['--http-loops', 'many'], /http-loops/],
      [['--log-level', 'loud'], /log-level|loud/],
      [['surplus'], /surplus/],
    ];
    for (const [args, names] of cases) {
      const listen = args.includes('--listen') ? [] : ['--listen', '127.0.0.1:0'];
      assert.match(refuses([...listen, ...args]), names, args.join(' '));
    }
  });
});

describe('stopping', { concurrency: 4 }, () => {
  it('SIGTERM answers what is in flight, then ends with status 0', async () => {
    const server = await start();
    const organization = await new World(server).organization();
    const event = await organization.event({ layout: layoutOf(block('A', 1, [100])) });
    const buyer = organization.buyer();
    await event.hold(buyer, event.seats[0]);
    const checkout = ok(await event.checkout(buyer), 201);
    const wires = await Promise.all(Array.from({ length: 50 }, () => Wire.open(server)));
    await Promise.all(wires.map((wire) => wire.exchange(rawRequest('GET', '/healthz'))));
    const paying = buyer.post(`/api/checkouts/${checkout.checkout_id}/complete`, { payment_token: 'tok_slow' });
    await waitFor('the payment to be under way', async () => ok(await buyer.get(`/api/checkouts/${checkout.checkout_id}`)).status === 'processing');
    const answers = wires.map((wire, index) => wire.exchange(rawRequest('POST', `${event.path}/seats/${event.seats[index + 1].seat_id}/reserve`,
      { authorization: `Bearer ${organization.buyer().bearer}`, 'content-length': 0 })));
    await within('the first of them', Promise.race(answers)); // what is on its way when the signal comes may be refused
    const stopping = server.stop();
    const done = await within('answers while stopping', Promise.all(answers));
    for (const answer of done) assert.ok([201, 503].includes(answer.status), `${answer.status} ${answer.text}`);
    const granted = done.filter((answer) => answer.status === 201).length;
    assert.ok(granted > 0, 'at least those decided already');
    const last = await within('the payment\'s answer while stopping', paying);
    assert.ok([200, 202].includes(last.status), last.text);
    await stopping;
    for (const wire of wires) wire.close();
    await server.launch();
    const seats = ok(await new World(server).caller('admin', organization.id).get(`${event.path}/seats`));
    assert.equal(seats.filter((seat) => seat.status === 'held').length + seats.filter((seat) => seat.status === 'sold').length >= granted, true);
    await server.stop();
    const proof = await server.verify();
    assert.equal(proof.status, 0, proof.stdout + proof.stderr);
  });

  it('SIGTERM with idle connections, half a request and open streams still ends', async () => {
    const server = await start();
    const organization = await new World(server).organization();
    const event = await organization.event();
    const sockets = Array.from({ length: 20 }, (_, index) => {
      const socket = connect(server.port, '127.0.0.1');
      socket.on('error', () => {});
      if (index % 2) socket.write('POST /api/checkouts HTTP/1.1\r\nhost: x\r\ncontent-length: 100\r\n\r\n{');
      else if (index % 4) socket.write(`GET ${event.path}/stream HTTP/1.1\r\nhost: x\r\nauthorization: Bearer ${organization.buyer().bearer}\r\n\r\n`);
      return socket;
    });
    await pause(200);
    await server.stop();
    for (const socket of sockets) socket.destroy();
  });

  it('an impatient second SIGTERM ends it at once or lets it drain, and the store is sound', async () => {
    const server = await start();
    const organization = await new World(server).organization();
    const event = await organization.event();
    const hold = await event.hold(organization.buyer(), event.seats[0]);
    server.child.kill('SIGTERM');
    await pause(50);
    server.child.kill('SIGTERM');
    const end = await within('the server to end', server.exited);
    assert.ok(end.status === 0 || end.status === 143 || end.signal === 'SIGTERM', JSON.stringify(end));
    server.checkOutput();
    const proof = await server.verify();
    assert.equal(proof.status, 0, proof.stdout + proof.stderr);
    await server.launch();
    const [row] = ok(await new World(server).caller('admin', organization.id).get(`${event.adminPath}/holds`));
    assert.equal(row.hold_id, hold.hold_id);
    await server.stop();
  });

  it('SIGINT stops as SIGTERM does', async () => {
    const server = await start();
    server.child.kill('SIGINT');
    const end = await within('the server to end after SIGINT', server.exited);
    assert.equal(end.status, 0);
    server.checkOutput();
  });

  it('the binary is there and says its version', () => {
    assert.ok(readFileSync(binary).length > 0);
    assert.match(run(['--version']).stdout, /\d+\.\d+/);
  });
});
