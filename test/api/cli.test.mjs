// SPDX-License-Identifier: Apache-2.0
// The command line: help, token, import, migrate, verify, registry, and where settings come from.

import assert from 'node:assert/strict';
import { createHmac } from 'node:crypto';
import { existsSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, it } from 'node:test';

import { ok, send } from '../lib/client.mjs';
import { run, runAsync, Server, start, tempDir } from '../lib/server.mjs';
import { UUID, UUID7 } from '../lib/shape.mjs';
import { sqlite, sqliteWrite } from '../lib/sqlite.mjs';
import { now, uuid } from '../lib/token.mjs';
import { waitFor } from '../lib/wait.mjs';
import { block, buy, importDocument, importInto, layoutOf, World } from '../lib/world.mjs';

const COMMANDS = ['serve', 'demo', 'migrate', 'import', 'token', 'registry', 'verify', 'bench'];
const usage = (result) => {
  assert.equal(result.status, 2, `status ${result.status}: ${result.stderr}`);
  assert.equal(result.stderr.trim().split('\n').length, 1, result.stderr);
  assert.equal(result.stdout, '');
};
/** Ended badly, with one sentence of ours; progress may stand before it. */
const failure = (result) => {
  assert.ok(result.status > 0, `status ${result.status}`);
  const lines = result.stderr.trim().split('\n');
  assert.equal(lines.filter((line) => line.startsWith('holdfast: ')).length, 1, result.stderr);
  assert.match(lines[lines.length - 1], /^holdfast: \S.*\.$/, 'the last line is a sentence');
};

describe('help', () => {
  it('names every command, and every command explains itself', () => {
    const all = run(['--help']);
    assert.equal(all.status, 0);
    for (const command of COMMANDS) {
      assert.match(all.stdout, new RegExp(`\\b${command}\\b`));
      const one = run([command, '--help']);
      assert.equal(one.status, 0, command);
      assert.match(one.stdout, new RegExp(`Usage: holdfast ${command}`));
      assert.equal(one.stderr, '');
      if (!['bench'].includes(command)) assert.match(one.stdout, /--store/, `${command} takes --store`);
    }
  });

  it('no command and an unknown command say what there is', () => {
    const none = run([]);
    assert.match(none.stdout + none.stderr, /serve/);
    const unknown = run(['server']);
    assert.equal(unknown.status, 2);
    assert.match(unknown.stderr, /server/);
  });
});

describe('token', () => {
  const secretFile = () => {
    const file = join(tempDir(), 'secret');
    writeFileSync(file, 's'.repeat(48), { mode: 0o600 });
    return file;
  };

  it('prints one token with the claims asked for, signed with the secret', () => {
    const file = secretFile();
    const [org, user] = [uuid(), uuid()];
    const result = run(['token', '--org', org, '--user', user, '--role', 'agent', '--ttl', '120', '--jwt-secret-file', file]);
    assert.equal(result.status, 0, result.stderr);
    const token = result.stdout.trim();
    const [head, body, tail] = token.split('.');
    assert.deepEqual(JSON.parse(Buffer.from(head, 'base64url')).alg, 'HS256');
    const claims = JSON.parse(Buffer.from(body, 'base64url'));
    assert.equal(claims.sub, user);
    assert.equal(claims.org, org);
    assert.equal(claims.role, 'agent');
    assert.ok(Math.abs(claims.exp - (now() + 120)) <= 10);
    assert.equal(tail, createHmac('sha256', 's'.repeat(48)).update(`${head}.${body}`).digest('base64url'));
  });

  it('refuses what would make no good token', () => {
    const file = secretFile();
    const base = ['token', '--jwt-secret-file', file];
    for (const args of [['--org', 'x'], ['--org', uuid(), '--user', 'x'], ['--org', uuid(), '--role', 'king'], ['--org', uuid(), '--ttl', '-5'], ['--org', uuid(), '--ttl', 'x'],
      ['--role', 'buyer'], ['--org', uuid(), '--ttl', '99999999999999']]) {
      failure(run([...base, ...args]));
    }
    failure(run(['token', '--org', uuid(), '--jwt-secret-file', join(tempDir(), 'missing')]));
  });

  it('works on a server that was started without any option', async () => {
    const dir = tempDir();
    const server = new Server({ dir, database: join(dir, 'holdfast.db'), keyArgs: [] });
    await server.launch();
    const secret = join(dir, 'holdfast.db.secret');
    assert.ok(existsSync(secret), 'a secret was generated beside the store');
    assert.equal(statSync(secret).mode & 0o777, 0o600);
    const first = readFileSync(secret, 'utf8');
    assert.ok(first.trim().length >= 32);
    const made = run(['token', '--role', 'operator', '--store', `sqlite:${server.database}`], { cwd: dir });
    assert.equal(made.status, 0, made.stderr);
    const token = made.stdout.trim();
    ok(await send(`${server.url}/api/admin/organizations`, { method: 'POST', token, body: { name: 'X' } }), 201);
    await server.stop();
    await server.launch();
    assert.equal(readFileSync(secret, 'utf8'), first, 'the secret is kept');
    ok(await send(`${server.url}/api/admin/organizations`, { method: 'POST', token, body: { name: 'Y' } }), 201);
    await server.stop();
  });
});

describe('import', () => {
  it('writes organization, event, policy and layout, and prints their ids as JSON', async () => {
    const dir = tempDir();
    const database = join(dir, 'holdfast.db');
    const ids = importInto(database, importDocument({
      event: { name: 'Gala', status: 'published', currency: 'USD', sale_start: '2020-01-01T00:00:00Z', sale_end: '2040-01-01T00:00:00Z', policy: { hold_ttl_seconds: 42 } },
      layout: layoutOf(block('A', 1, [3, 4], { price: 900 }), block('B', 2, [['x', 'y']])),
    }));
    assert.match(ids.organization_id, UUID7);
    assert.match(ids.event_id, UUID7);
    const server = await start({ dir, database });
    const buyer = new World(server).caller('buyer', ids.organization_id);
    const event = ok(await buyer.get(`/api/events/${ids.event_id}`));
    assert.deepEqual([event.name, event.currency, event.policy.hold_ttl_seconds, event.status], ['Gala', 'USD', 42, 'published']);
    assert.equal(ok(await buyer.get(`/api/events/${ids.event_id}/seats`)).length, 9);
    await server.stop();
    assert.equal(run(['verify', '--store', `sqlite:${database}`]).status, 0);
  });

  it('reads standard input, keeps given ids, and adds an event to an organization that is there', () => {
    const database = join(tempDir(), 'holdfast.db');
    const [organization, event] = [uuid(), uuid()];
    const first = run(['import', '--store', `sqlite:${database}`, '-'], { input: JSON.stringify(importDocument({ organization: { id: organization, name: 'Ours' }, event: { id: event } })) });
    assert.equal(first.status, 0, first.stderr);
    const ids = JSON.parse(first.stdout);
    assert.equal(ids.organization_id, organization);
    assert.equal(ids.event_id, event);
    const second = run(['import', '--store', `sqlite:${database}`, '-'], { input: JSON.stringify(importDocument({ organization: { id: organization, name: 'Ours' } })) });
    assert.equal(second.status, 0, second.stderr);
    assert.equal(JSON.parse(second.stdout).organization_id, organization);
    assert.notEqual(JSON.parse(second.stdout).event_id, event);
  });

  it('the largest layout goes in', () => {
    const database = join(tempDir(), 'holdfast.db');
    importInto(database, importDocument({ layout: layoutOf(block('A', 1, Array(1000).fill(100))) }));
    assert.equal(run(['verify', '--store', `sqlite:${database}`]).status, 0);
  });

  it('bad files are refused with one sentence that says where, and nothing is written', () => {
    const dir = tempDir();
    const database = join(dir, 'holdfast.db');
    const file = join(dir, 'in.json');
    const cases = [
      ['{', /line|JSON/i], ['[]', /object|organization/], ['{}', /organization/],
      [JSON.stringify({ ...importDocument(), event: undefined }), /event/],
      [JSON.stringify({ ...importDocument(), layout: undefined }), /layout/],
      [JSON.stringify(importDocument({ organization: { name: '' } })), /name/],
      [JSON.stringify(importDocument({ organization: { id: 'x', name: 'y' } })), /id/],
      [JSON.stringify(importDocument({ event: { name: 5 } })), /name/],
      [JSON.stringify(importDocument({ event: { status: 'open' } })), /status/],
      [JSON.stringify(importDocument({ event: { policy: { hold_ttl_seconds: 0 } } })), /hold_ttl_seconds/],
      [JSON.stringify(importDocument({ event: { sale_start: 'soon' } })), /sale_start/],
      [JSON.stringify(importDocument({ layout: layoutOf({ ...block('A', 1, [1]), section: 'lower' }) })), /section/],
      [JSON.stringify(importDocument({ layout: layoutOf(block('A', 1, Array(1001).fill(100))) })), /100,?000|seats/],
      [Buffer.from([0x7b, 0xff, 0x7d]), /./],
    ];
    for (const [content, names] of cases) {
      writeFileSync(file, content);
      const result = run(['import', '--store', `sqlite:${database}`, file]);
      failure(result);
      assert.match(result.stderr, names, String(content).slice(0, 120));
      assert.equal(result.stdout, '');
    }
    failure(run(['import', '--store', `sqlite:${database}`, join(dir, 'missing.json')]));
    usage(run(['import', '--store', `sqlite:${database}`]));
    if (existsSync(database) && sqlite(database, "SELECT count(*) FROM sqlite_master WHERE name = 'events'")[0][0] === '1') {
      assert.equal(sqlite(database, 'SELECT count(*) FROM events')[0][0], '0');
      assert.equal(sqlite(database, 'SELECT count(*) FROM organizations')[0][0], '0');
    }
  });

  it('the same event twice is refused', () => {
    const database = join(tempDir(), 'holdfast.db');
    const document = importDocument({ organization: { id: uuid(), name: 'Ours' }, event: { id: uuid() } });
    importInto(database, document);
    failure(run(['import', '--store', `sqlite:${database}`, '-'], { input: JSON.stringify(document) }));
    assert.equal(run(['verify', '--store', `sqlite:${database}`]).status, 0);
  });
});

describe('migrate and verify', () => {
  it('migrate makes a store, and again does nothing', () => {
    const database = join(tempDir(), 'holdfast.db');
    assert.equal(run(['migrate', '--store', `sqlite:${database}`]).status, 0);
    const [[version]] = sqlite(database, 'PRAGMA user_version');
    assert.ok(Number(version) >= 1);
    assert.equal(run(['migrate', '--store', `sqlite:${database}`]).status, 0);
    assert.equal(sqlite(database, 'PRAGMA user_version')[0][0], version);
    assert.equal(run(['verify', '--store', `sqlite:${database}`]).status, 0, 'an empty store is a right one');
  });

  it('verify proves a used store, and finds every promise that is broken by hand', async () => {
    const server = await start();
    const organization = await new World(server).organization();
    const event = await organization.event({ layout: layoutOf(block('A', 1, [20])) });
    for (let i = 0; i < 4; i++) await event.hold(organization.buyer(), event.seats[i]);
    await buy(event, organization.buyer(), [event.seats[10], event.seats[11]]);
    await server.stop();
    const good = run(['verify', '--store', `sqlite:${server.database}`]);
    assert.equal(good.status, 0, good.stdout + good.stderr);
    const json = run(['verify', '--json', '--store', `sqlite:${server.database}`]);
    assert.equal(json.status, 0);
    JSON.parse(json.stdout);
    const damages = {
      'a held seat without its hold': "DELETE FROM seat_holds WHERE id = (SELECT id FROM seat_holds WHERE status = 'active' LIMIT 1)",
      'an active hold on a seat that is available': "UPDATE seats SET status = 'available', seat_hold_id = NULL WHERE id = (SELECT id FROM seats WHERE status = 'held' LIMIT 1)",
      'a sold seat without a ticket': 'DELETE FROM tickets WHERE id = (SELECT id FROM tickets LIMIT 1)',
      'a sold seat that is available again': "UPDATE seats SET status = 'available' WHERE id = (SELECT id FROM seats WHERE status = 'sold' LIMIT 1)",
      'a hold that ended without the seat knowing': "UPDATE seat_holds SET status = 'expired' WHERE id = (SELECT id FROM seat_holds WHERE status = 'active' LIMIT 1)",
    };
    for (const [what, sql] of Object.entries(damages)) {
      const copy = join(tempDir(), 'broken.db');
      sqliteWrite(server.database, `VACUUM INTO '${copy}'`);
      sqliteWrite(copy, sql);
      const broken = run(['verify', '--store', `sqlite:${copy}`]);
      assert.equal(broken.status, 1, `${what}: ${broken.stdout}${broken.stderr}`);
      assert.ok((broken.stdout + broken.stderr).length > 10, 'it says what is wrong');
    }
  });

  it('verify and migrate on a store that is not there do not invent one silently', () => {
    const database = join(tempDir(), 'nothing.db');
    const result = run(['verify', '--store', `sqlite:${database}`]);
    failure(result);
    assert.ok(!existsSync(database), 'verify creates nothing');
  });
});

describe('values that cannot be used', () => {
  const bad = [['--listen', 'foo'], ['--http-loops', '0'], ['--log-level', 'loud'], ['--order', 'kafka://x'], ['--store', 'foo:bar'],
    ['--order', 'rabbit://x'], ['--order', 'kafka://x', '--store', 'postgres://127.0.0.1:1/x', '--listen', '127.0.0.1:0'],
    ['--order-config', '/etc/kafka.properties'], ['--order-topics', 'mine'], ['--order-make-topics', 'perhaps'], ['--order-events', '1'],
    ['--node-name', 'not a name'],
    ['--trusted-proxy', 'foo'], ['--metrics-listen', 'foo'], ['--warm', 'foo'], ['--warm', 'redis://h:port']];
  for (const words of bad) {
    it(`serve ${words.join(' ')}: wrong use, before anything is made`, () => {
      const folder = tempDir();
      usage(run(['serve', ...words], { cwd: folder }));
      assert.deepEqual(readdirSync(folder), []);
    });
  }

  it('demo --buyers -1', () => usage(run(['demo', '--buyers', '-1'])));
});

describe('registry', () => {
  it('status of a server that is not there fails, whatever the store has', () => {
    const store = `sqlite:${join(tempDir(), 'empty.db')}`;
    assert.equal(run(['migrate', '--store', store]).status, 0);
    failure(run(['registry', 'status', '--store', store, '--url', 'http://127.0.0.1:1']));
  });

  it('status and reconcile over a running server', async () => {
    const server = await start();
    const organization = await new World(server).organization();
    const event = await organization.event();
    await event.hold(organization.buyer(), event.seats[0]);
    const base = ['--url', server.url, '--token', organization.admin.bearer, '--event', event.id];
    const status = await runAsync(['registry', 'status', '--json', ...base]);
    assert.equal(status.status, 0, status.stderr);
    assert.ok(status.stdout.includes(event.id) || /consistent/.test(status.stdout), status.stdout);
    const reconcile = await runAsync(['registry', 'reconcile', ...base]);
    assert.equal(reconcile.status, 0, reconcile.stderr);
    const denied = await runAsync(['registry', 'status', '--url', server.url, '--token', organization.buyer().bearer, '--event', event.id]);
    failure(denied);
    await server.stop();
    failure(await runAsync(['registry', 'status', ...base]));
    usage(run(['registry']));
    usage(run(['registry', 'polish']));
  });
});

describe('settings', () => {
  it('a flag wins over the environment, the environment over the file', async () => {
    const dir = tempDir();
    const secret = join(dir, 'secret');
    writeFileSync(secret, 'x'.repeat(64), { mode: 0o600 });
    const [inFile, inEnv, inFlag] = ['file.db', 'env.db', 'flag.db'].map((name) => join(dir, name));
    const config = join(dir, 'holdfast.conf');
    writeFileSync(config, `# a comment\nlisten = 127.0.0.1:0\nstore = sqlite:${inFile}\njwt-secret-file = "${secret}"\n`);
    assert.equal(run(['migrate', '--config', config]).status, 0);
    assert.deepEqual([existsSync(inFile), existsSync(inEnv), existsSync(inFlag)], [true, false, false]);
    assert.equal(run(['migrate'], { env: { HOLDFAST_CONFIG: config, HOLDFAST_STORE: `sqlite:${inEnv}` } }).status, 0);
    assert.deepEqual([existsSync(inEnv), existsSync(inFlag)], [true, false]);
    assert.equal(run(['migrate', '--store', `sqlite:${inFlag}`, '--config', config], { env: { HOLDFAST_STORE: `sqlite:${inEnv}` } }).status, 0);
    assert.equal(existsSync(inFlag), true);
  });

  it('a server can be started from a file alone', async () => {
    const dir = tempDir();
    const config = join(dir, 'holdfast.conf');
    const server = new Server({ dir });
    writeFileSync(config, `listen = 127.0.0.1:0\nstore = sqlite:${server.database}\njwt-secret-file = ${server.secretFile}\nlog-level = warn\n`);
    server.arguments = () => ['serve', '--config', config];
    await server.launch();
    await new World(server).organization();
    await server.stop();
  });

  it('a bad file is refused with its line', () => {
    const config = join(tempDir(), 'holdfast.conf');
    for (const text of ['listen 127.0.0.1:0\n', '# fine\nno-such-key = 1\n', 'store = sqlite:a\nstore = sqlite:b\n', 'store = "unclosed\n']) {
      writeFileSync(config, text);
      const result = run(['migrate', '--config', config]);
      failure(result);
      assert.match(result.stderr, /line|:\d/);
    }
  });

  it('the metrics address answers metrics and nothing else', async () => {
    const server = await start({ args: ['--metrics-listen', '127.0.0.1:0'] });
    const address = [...server.output().matchAll(/127\.0\.0\.1:(\d+)/g)].map((match) => Number(match[1])).find((port) => port !== server.port && port !== 0);
    if (address !== undefined) {
      const metrics = await send(`http://127.0.0.1:${address}/metrics`);
      assert.equal(metrics.status, 200);
      assert.match(metrics.text, /holdfast_/);
      assert.equal((await send(`http://127.0.0.1:${address}/api/events`)).status, 404);
    }
    await server.stop();
  });

  it('a trusted proxy\'s header is believed, and only its', async () => {
    const server = await start({ args: ['--trusted-proxy', '127.0.0.1'] });
    const organization = await new World(server).organization();
    const event = await organization.event();
    const response = await event.reserve(organization.buyer(), event.seats[0], {}, { headers: { 'x-forwarded-for': '203.0.113.9' } });
    const hold = ok(response, 201);
    const [row] = ok(await organization.admin.get(`/api/admin/audit?entity_id=${hold.hold_id}`));
    assert.ok(JSON.stringify(row).includes('203.0.113.9'));
    await server.stop();
  });

  it('the ready line is one line and names the address', async () => {
    const server = await start();
    assert.match(server.readyLine, /127\.0\.0\.1:\d+/);
    assert.notEqual(server.port, 0);
    await server.stop();
  });
});

describe('demo', () => {
  it('shows a hall with people in it, prints how to use it, gives tokens, and leaves nothing behind', async () => {
    const dir = tempDir();
    const server = new Server({ dir, env: { TMPDIR: dir } });
    server.arguments = () => ['demo', '--listen', '127.0.0.1:0', '--buyers', '40'];
    await server.launch();
    const { data } = (await send(`${server.url}/api/demo/token`, { method: 'POST' })).body;
    const event = `/api/events/${data.event_id}`;
    const occupancy = async () => ok(await send(`${server.url}${event}/occupancy`, { token: data.buyer.token }));
    assert.ok((await occupancy()).total >= 5000, 'an arena');
    await waitFor('the simulated buyers to hold seats', async () => (await occupancy()).held > 0);
    ok(await send(`${server.url}/api/admin/events`, { token: data.admin.token }));
    const best = ok(await send(`${server.url}${event}/holds`, { method: 'POST', token: data.buyer.token, body: { quantity: 2 } }), 201);
    assert.equal(best.holds.length, 2);
    await waitFor('the hints', () => /curl/.test(server.output()));
    assert.match(server.output(), /http:\/\/127\.0\.0\.1:\d+\//);
    await server.stop();
    assert.deepEqual(readdirSync(dir).filter((name) => name.startsWith('holdfast-demo')), [], 'its temporary store is removed');
  });
});

describe('ids', () => {
  it('import prints ids that are UUIDs', () => {
    const ids = importInto(join(tempDir(), 'holdfast.db'), importDocument());
    assert.match(ids.organization_id, UUID);
    assert.match(ids.event_id, UUID);
  });
});
