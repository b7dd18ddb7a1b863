// SPDX-License-Identifier: Apache-2.0
// Every way to say where Redis is, with real servers: password, ACL user, database, unix socket, TLS with an authority of
// one's own, a second address. Each must be seen to filter; each that is wrong must leave a node that works without it.

import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';

import { fails } from '../lib/client.mjs';
import { makeDatabase, Postgres } from '../lib/postgres.mjs';
import { Redis, Registry } from '../lib/redis.mjs';
import { run, Server, start, tempDir } from '../lib/server.mjs';
import { waitFor } from '../lib/wait.mjs';
import { World } from '../lib/world.mjs';

/** An authority and a certificate of it for 127.0.0.1; paths. */
function certificates(name = '/CN=127.0.0.1', names = 'IP:127.0.0.1,DNS:localhost') {
  const dir = tempDir();
  const at = (file) => join(dir, file);
  const openssl = (...args) => execFileSync('openssl', args, { stdio: 'pipe' });
  openssl('req', '-x509', '-newkey', 'rsa:2048', '-nodes', '-days', '2', '-subj', '/CN=Test authority', '-keyout', at('ca.key'), '-out', at('ca.crt'));
  openssl('req', '-newkey', 'rsa:2048', '-nodes', '-subj', name, '-addext', `subjectAltName=${names}`, '-keyout', at('redis.key'), '-out', at('redis.csr'));
  openssl('x509', '-req', '-in', at('redis.csr'), '-CA', at('ca.crt'), '-CAkey', at('ca.key'), '-CAcreateserial', '-days', '2', '-copy_extensions', 'copy', '-out', at('redis.crt'));
  return { ca: at('ca.crt'), key: at('redis.key'), cert: at('redis.crt') };
}

describe('where Redis is', { concurrency: 3 }, () => {
  let postgres;
  const servers = new Set();
  const open = async (options) => {
    const redis = await Redis.start(options);
    servers.add(redis);
    return redis;
  };
  before(() => {
    postgres = new Postgres();
  });
  after(() => {
    for (const redis of servers) redis.destroy();
    postgres.destroy();
  });

  const node = async (warm) => {
    const server = await start({ store: makeDatabase(postgres.url), args: ['--warm', warm] });
    const organization = await new World(server).organization();
    return { server, organization, event: await organization.event() };
  };
  const ready = async (server) => (await (await fetch(`${server.url}/readyz`)).json()).data;
  const becomes = (server, state) => waitFor(`the breaker to be ${state}`, async () => (await ready(server)).breaker === state, 30000);
  const finish = async (server) => {
    await server.stop();
    const proof = await server.verify();
    assert.equal(proof.status, 0, proof.stdout + proof.stderr);
  };

  /** The node filters through this Redis: a hold's lock is there, and a foreign lock refuses. */
  const filters = async ({ server, organization, event }, redis, at = 0) => {
    await becomes(server, 'closed');
    const registry = new Registry(redis, event);
    const hold = await event.hold(organization.buyer(), event.seats[at]);
    await waitFor('the lock', async () => (await registry.lock(event.seats[at]))?.hold_id === hold.hold_id);
    await registry.plantLock(event.seats[at + 1], { hold: hold.hold_id.replace(/^./, 'f'), user: organization.buyer().user });
    assert.equal((await event.reserve(organization.buyer(), event.seats[at + 1])).status, 409, 'its locks are asked');
  };

  /** The node serves, without Redis. */
  const serves = async ({ server, organization, event }) => {
    await becomes(server, 'open');
    assert.equal((await fetch(`${server.url}/readyz`)).status, 200);
    const seat = event.seats[15];
    await event.hold(organization.buyer(), seat);
    fails(await event.reserve(organization.buyer(), seat), 409, 'seat_held_by_another_user');
  };

  it('a password', async () => {
    const redis = await open({ args: ['--requirepass', 'let me: in/@?,%'], auth: ['let me: in/@?,%'] });
    const good = await node(`redis://:${encodeURIComponent('let me: in/@?,%')}@${redis.address}`);
    await filters(good, redis);
    assert.ok(!good.server.output().includes('let me'), 'the password is in no log line');
    await finish(good.server);
  });

  it('a wrong password, or none: one clear line in the log, and service without Redis', async () => {
    const redis = await open({ args: ['--requirepass', 'right'], auth: ['right'] });
    for (const [url, said] of [[`redis://:hunter2@${redis.address}?retry_ms=500`, /WRONGPASS/], [`redis://${redis.address}?retry_ms=500`, /NOAUTH/]]) {
      const it = await node(url);
      await serves(it);
      await waitFor('the reason in the log', () => said.test(it.server.output()));
      assert.ok(!it.server.output().includes('hunter2'), 'the password is in no log line');
      assert.ok(it.server.output().split('\n').filter((line) => /"level":"(warn|error)"/.test(line)).length < 10, `the log is not flooded: ${it.server.output()}`);
      await finish(it.server);
    }
  });

  it('an ACL user, and one who may too little', async () => {
    const redis = await open();
    await redis.command('ACL', 'SETUSER', 'holdfast', 'on', '>secret', '~*', '&*', '+@all');
    await redis.command('ACL', 'SETUSER', 'poor', 'on', '>secret', '~*', '&*', '+ping', '+get', '+set');
    const good = await node(`redis://holdfast:secret@${redis.address}`);
    await filters(good, redis);
    await finish(good.server);
    const poor = await node(`redis://poor:secret@${redis.address}?retry_ms=500`);
    const seat = poor.event.seats[0];
    await poor.event.hold(poor.organization.buyer(), seat);
    fails(await poor.event.reserve(poor.organization.buyer(), seat), 409, 'seat_held_by_another_user');
    await waitFor('a word about it in the log', () => /NOPERM/.test(poor.server.output()));
    await finish(poor.server);
  });

  it('a database of its own', async () => {
    const redis = await open();
    const it = await node(`redis://${redis.address}/3`);
    await becomes(it.server, 'closed');
    await it.event.hold(it.organization.buyer(), it.event.seats[0]);
    assert.equal(await redis.command('DBSIZE'), 0, 'nothing in database 0');
    await redis.command('SELECT', 3);
    await filters(it, redis, 1);
    await finish(it.server);
  });

  it('a unix socket', async () => {
    const redis = await open();
    const it = await node(`unix://${redis.socketPath}?db=2`);
    await redis.command('SELECT', 2);
    await filters(it, redis);
    await finish(it.server);
  });

  it('TLS with an authority of one’s own; without it, or for another name, it is not trusted', async () => {
    const own = certificates();
    const redis = await open({ tls: own });
    const it = await node(`rediss://${redis.address}?cafile=${encodeURIComponent(own.ca)}`);
    await filters(it, redis);
    await finish(it.server);
    const stranger = await node(`rediss://${redis.address}?retry_ms=500`);
    await serves(stranger);
    assert.match(stranger.server.output(), /certificate/i);
    await finish(stranger.server);
    const elsewhere = certificates('/CN=elsewhere.test', 'DNS:elsewhere.test');
    const masked = await open({ tls: elsewhere });
    const fooled = await node(`rediss://${masked.address}?retry_ms=500&cafile=${encodeURIComponent(elsewhere.ca)}`);
    await serves(fooled);
    await finish(fooled.server);
  });

  it('plain where TLS is spoken, and TLS where it is not: service without Redis', async () => {
    const own = certificates();
    const redis = await open({ tls: own });
    const plain = await open();
    for (const url of [`redis://${redis.address}?retry_ms=500`, `rediss://${plain.address}?retry_ms=500&cafile=${encodeURIComponent(own.ca)}`]) {
      const it = await node(url);
      await serves(it);
      await finish(it.server);
    }
  });

  it('a second address is used when the first dies, holds all that is active, and is kept while it works', async () => {
    const first = await open();
    const second = await open();
    const it = await node(`${first.url},${second.url}?retry_ms=500`);
    await filters(it, first);
    const kept = await it.event.hold(it.organization.buyer(), it.event.seats[5]);
    assert.equal(await second.command('DBSIZE'), 0);
    await first.kill();
    await waitFor('the other to be filled', async () => {
      await it.event.reserve(it.organization.buyer(), it.event.seats[6]);
      return (await ready(it.server)).breaker === 'closed' && (await second.command('DBSIZE')) > 0;
    }, 30000, 100);
    const registry = new Registry(second, it.event);
    assert.equal((await registry.lock(it.event.seats[5]))?.hold_id, kept.hold_id, 'what was active before stands there');
    await filters(it, second, 8);
    await second.kill();
    await serves(it);
    await first.launch();
    await becomes(it.server, 'closed');
    await waitFor('the first to be filled again', async () => (await new Registry(first, it.event).lock(it.event.seats[5]))?.hold_id === kept.hold_id);
    await finish(it.server);
  });

  it('nobody there at the start: ready all the same, and used as soon as it comes', async () => {
    const redis = await open();
    await redis.kill();
    const it = await node(`${redis.url}?retry_ms=500`);
    await serves(it);
    await redis.launch();
    await filters(it, redis);
    await finish(it.server);
  });

  it('something that is no Redis: service without it', async () => {
    const it = await node(`redis://127.0.0.1:${postgres.port}?retry_ms=500`);
    await serves(it);
    await finish(it.server);
  });

  it('addresses that make no sense are refused in one sentence that does not tell the password', () => {
    const store = makeDatabase(postgres.url);
    for (const url of ['http://x', 'redis://', 'redis://:hunter2@x:99999', 'redis://:hunter2@x/y', 'unix://relative', 'redis://:hunter2@x?no_such=1', 'redis://x,', 'redis://[::1']) {
      const result = run(['serve', '--listen', '127.0.0.1:0', '--store', store, '--jwt-secret-file', new Server({ store }).secretFile, '--warm', url]);
      assert.notEqual(result.status, 0, url);
      assert.equal(result.stderr.trim().split('\n').length, 1, result.stderr);
      assert.ok(!(result.stdout + result.stderr).includes('hunter2'), result.stderr);
    }
  });
});
