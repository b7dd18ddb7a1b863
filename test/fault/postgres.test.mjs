// SPDX-License-Identifier: Apache-2.0
// PostgreSQL in trouble, and a node over it: connections killed in the middle of transactions, answers lost after
// COMMIT, a server that is restarted, killed, frozen, read-only or full. Each time nothing acknowledged is lost, nothing
// is held twice, service comes back by itself, and `holdfast verify` is clean.

import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { after, before, describe, it } from 'node:test';

import { fails, ok } from '../lib/client.mjs';
import { makeDatabase, Postgres, Proxy, psql } from '../lib/postgres.mjs';
import { run, start } from '../lib/server.mjs';
import { pause, waitFor } from '../lib/wait.mjs';
import { block, Event, layoutOf, Organization, World } from '../lib/world.mjs';

const clean = async (server) => {
  const proof = await server.verify();
  assert.equal(proof.status, 0, proof.stdout + proof.stderr);
};

describe('PostgreSQL', () => {
  let postgres;
  before(() => {
    postgres = new Postgres();
  });
  const proxies = new Set();
  const servers = new Set();
  after(async () => {
    for (const proxy of proxies) proxy.close();
    for (const server of servers) if (server.child.exitCode === null && server.child.signalCode === null) await server.kill9();
    postgres.destroy();
  });

  /** A node on a new database, with an event of `rows` rows of 50. */
  const begin = async ({ rows = 4, base = postgres.url, proxy } = {}) => {
    const store = makeDatabase(base);
    const seen = proxy ? store.replace(/:\d+\//, `:${proxy.port}/`) : store;
    const server = await start({ store: seen });
    servers.add(server);
    const organization = await new World(server).organization();
    const event = await organization.event({ layout: layoutOf(block('A', 1, Array(rows).fill(50))) });
    return { server, organization, event, store };
  };

  /** Reserves seats from several sides until `stop()`; remembers what was acknowledged. */
  const load = (event, width = 8) => {
    const acknowledged = new Map();
    const statuses = new Map();
    let stopped = false;
    const wanted = [...event.seats].reverse();
    const workers = Array.from({ length: width }, async () => {
      while (!stopped && wanted.length > 0) {
        const seat = wanted.pop();
        const answer = await event.reserve(event.organization.buyer(), seat, {}, { limitMs: 15000 });
        statuses.set(answer.status, (statuses.get(answer.status) ?? 0) + 1);
        if (answer.status === 201) acknowledged.set(seat.seat_id, answer.body.data.hold_id);
        if (answer.status === 503) wanted.push(seat); // nothing was changed: somebody else may have it
        if (answer.status !== 201) await pause(20);
      }
    });
    return {
      acknowledged,
      statuses,
      async stop() {
        stopped = true;
        await Promise.all(workers);
      },
    };
  };

  const heldInStore = (store) => new Map(psql(store, "SELECT seat_id, id FROM seat_holds WHERE status = 'active'"));

  const expectKept = (acknowledged, store) => {
    const held = heldInStore(store);
    for (const [seat, hold] of acknowledged) assert.equal(held.get(seat), hold, `the acknowledged hold of ${seat} is there`);
  };

  const expectOnly = (statuses, allowed) => {
    for (const [status, count] of statuses) assert.ok(allowed.includes(status), `${count} answers of ${status}`);
  };

  it('connections killed again and again in the middle of transactions lose nothing', async () => {
    const { server, event, store } = await begin({ rows: 20 });
    const work = load(event);
    for (let i = 0; i < 15; i++) {
      await pause(40);
      psql(store, "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()");
    }
    await waitFor('service again', async () => work.acknowledged.size > 50);
    await work.stop();
    expectOnly(work.statuses, [201, 503, 504]);
    expectKept(work.acknowledged, store);
    await server.stop();
    await clean(server);
  });

  it('an idle node whose connections were cut answers the next request', async () => {
    const { server, event, store, organization } = await begin();
    psql(store, "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()");
    await event.hold(organization.buyer(), event.seats[0]);
    ok(await organization.admin.get(`/api/admin/audit?event_id=${event.id}`));
    await server.stop();
  });

  for (const fate of ['lose-answer', 'lose-request']) {
    it(`COMMIT, ${fate}: the node finds out what became of it`, async () => {
      const proxy = await new Proxy(postgres.port).listen();
      proxies.add(proxy);
      const { server, event, store, organization } = await begin({ proxy });
      let cuts = 0;
      const buyer = organization.buyer();
      ok(await buyer.del(`/api/holds/${(await event.hold(buyer, event.seats[1])).hold_id}`)); // so that the buyer is known
      proxy.onCommit = () => (cuts++ === 0 ? fate : 'pass');
      const answer = await event.reserve(buyer, event.seats[0]);
      if (fate === 'lose-answer') {
        assert.equal(answer.status, 201, 'it had committed, and that was found out');
        assert.equal(heldInStore(store).get(event.seats[0].seat_id), answer.body.data.hold_id);
      } else {
        fails(answer, 503, 'store_unavailable');
        assert.equal(heldInStore(store).size, 0);
        await event.hold(buyer, event.seats[0]);
      }
      assert.ok(cuts >= 1);
      proxy.onCommit = () => (Math.random() < 0.2 ? fate : 'pass');
      const work = load(event);
      await waitFor('work under loss', async () => work.acknowledged.size >= 80);
      await work.stop();
      expectOnly(work.statuses, [201, 409, 503, 504]);
      proxy.onCommit = () => 'pass';
      expectKept(work.acknowledged, store);
      // What was unknown is known in the end: memory and store agree.
      await waitFor('the outcomes to be known', async () => (await event.occupancy()).held === heldInStore(store).size);
      await server.stop();
      await clean(server);
    });
  }

  for (const mode of ['fast', 'immediate']) {
    it(`restarted (${mode}) under load: 503 meanwhile, service again by itself`, async () => {
      const { server, event, store } = await begin({ rows: 40 });
      const work = load(event);
      await waitFor('some work', async () => work.acknowledged.size > 20);
      await postgres.restartAsync(mode);
      const before = work.acknowledged.size;
      await waitFor('service again', async () => work.acknowledged.size > before + 20);
      await work.stop();
      expectOnly(work.statuses, [201, 503, 504]);
      expectKept(work.acknowledged, store);
      await waitFor('readiness', async () => (await fetch(`${server.url}/readyz`)).status === 200);
      await server.stop();
      await clean(server);
    });
  }

  it('frozen for longer than a transaction may take: requests end in time, and service comes back', async () => {
    const { server, event, store, organization } = await begin();
    await event.hold(organization.buyer(), event.seats[0]);
    const pids = psql(store, 'SELECT pid FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()').map(([pid]) => Number(pid));
    for (const pid of pids) process.kill(pid, 'SIGSTOP');
    const answer = await event.reserve(organization.buyer(), event.seats[1]); // while it is frozen, or never
    for (const pid of pids) process.kill(pid, 'SIGCONT');
    assert.ok([201, 503, 504].includes(answer.status), `answered ${answer.status}`);
    await waitFor('service again', async () => (await event.reserve(organization.buyer(), event.seats[2])).status === 201);
    await waitFor('the outcome to be known', async () => (await event.occupancy()).held === heldInStore(store).size);
    await server.stop();
    await clean(server);
  });

  it('read-only: 503 and nothing changed, then service again', async () => {
    const { server, event, store, organization } = await begin();
    const database = new URL(store).pathname.slice(1);
    postgres.sql(`ALTER DATABASE ${database} SET default_transaction_read_only = on`);
    psql(store, 'SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()');
    fails(await event.reserve(organization.buyer(), event.seats[0]), 503, 'store_unavailable');
    assert.equal(heldInStore(store).size, 0);
    assert.equal((await fetch(`${server.url}/readyz`)).status, 503);
    postgres.sql(`ALTER DATABASE ${database} RESET default_transaction_read_only`);
    await waitFor('readiness by itself', async () => (await fetch(`${server.url}/readyz`)).status === 200);
    await event.hold(organization.buyer(), event.seats[0]);
    await server.stop();
    await clean(server);
  });

  it('at its connection limit: refused in one sentence at start, 503 while running, then service again', async () => {
    postgres.sql('CREATE ROLE plain LOGIN');
    const store = makeDatabase(postgres.url);
    const database = new URL(store).pathname.slice(1);
    postgres.sql(`ALTER DATABASE ${database} OWNER TO plain`);
    const plain = store.replace('postgres@', 'plain@');
    const server = await start({ store: plain });
    const organization = await new World(server).organization();
    const event = await organization.event();
    await event.hold(organization.buyer(), event.seats[0]);
    postgres.sql(`ALTER DATABASE ${database} CONNECTION LIMIT 0`);
    const refused = run(['serve', '--listen', '127.0.0.1:0', '--store', plain, '--jwt-secret-file', server.secretFile]);
    assert.notEqual(refused.status, 0);
    assert.match(refused.stderr, /too many connections/);
    psql(store, 'SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()');
    fails(await event.reserve(organization.buyer(), event.seats[1]), 503, 'store_unavailable');
    postgres.sql(`ALTER DATABASE ${database} CONNECTION LIMIT -1`);
    await waitFor('service again', async () => (await event.reserve(organization.buyer(), event.seats[2])).status === 201);
    await server.stop();
    await clean(server);
  });

  it('a seat that somebody else has locked is tried again, and not waited for', async () => {
    const { server, event, store, organization } = await begin();
    const [first, second] = event.seats;
    const locker = spawn('psql', ['-X', '-q', '-d', store], { stdio: ['pipe', 'pipe', 'ignore'] });
    let said = '';
    locker.stdout.setEncoding('utf8').on('data', (text) => (said += text));
    locker.stdin.write(`BEGIN; SELECT 'locked' FROM seats WHERE id = '${first.seat_id}' FOR UPDATE;\n`);
    await waitFor('the lock', async () => said.includes('locked'));
    const [blocked, free] = await Promise.all([
      event.reserve(organization.buyer(), first),
      event.reserve(organization.buyer(), second),
    ]);
    assert.equal(free.status, 201, 'its neighbour is not kept');
    fails(blocked, 500, 'seat_reservation_failed');
    locker.stdin.end('ROLLBACK;\n');
    await new Promise((done) => locker.on('close', done));
    await event.hold(organization.buyer(), first);
    await server.stop();
    await clean(server);
  });

  it('two nodes over one database, racing for the same seats, give each of them once', async () => {
    const { server, event, store, organization } = await begin({ rows: 6 });
    const other = await start({ store, secret: server.secret });
    const there = Object.assign(new Event(new Organization(new World(other), organization.id), event.id), { seats: event.seats });
    const winners = new Map();
    const statuses = new Map();
    const race = async (side) => {
      for (const seat of event.seats) {
        const answer = await side.reserve(side.organization.buyer(), seat);
        statuses.set(answer.status, (statuses.get(answer.status) ?? 0) + 1);
        if (answer.status !== 201) continue;
        assert.ok(!winners.has(seat.seat_id), `${seat.seat_id} was given twice`);
        winners.set(seat.seat_id, answer.body.data.hold_id);
      }
    };
    await Promise.all([race(event), race(there), race(event), race(there)]);
    expectOnly(statuses, [201, 409, 500]);
    assert.equal(winners.size, event.seats.length, 'every seat was given');
    expectKept(winners, store);
    assert.equal(heldInStore(store).size, winners.size);
    await other.stop();
    await server.stop();
    await clean(server);
  });

  it('an event that was cancelled by somebody else takes no more holds', async () => {
    const { server, event, store, organization } = await begin();
    psql(store, `UPDATE events SET status = 'cancelled', version = version + 1 WHERE id = '${event.id}'`);
    const answer = await event.reserve(organization.buyer(), event.seats[0]);
    assert.notEqual(answer.status, 201);
    assert.equal(heldInStore(store).size, 0);
    await server.stop();
  });

  it('a newer schema is refused in one sentence, untouched', () => {
    const store = makeDatabase(postgres.url);
    assert.equal(run(['migrate', '--store', store]).status, 0);
    psql(store, "INSERT INTO schema_migrations (version, name) VALUES (999, 'from the future')");
    for (const args of [['migrate'], ['verify']]) {
      const result = run([...args, '--store', store]);
      assert.notEqual(result.status, 0);
      assert.match(result.stderr, /version 999, newer than this program/);
      assert.equal(result.stderr.trim().split('\n').length, 1);
    }
  });

  it('several nodes that start together on an empty database migrate it once', async () => {
    const store = makeDatabase(postgres.url);
    const servers = await Promise.all([1, 2, 3].map(() => start({ store })));
    const [[count, last]] = psql(store, 'SELECT count(*), max(version) FROM schema_migrations');
    assert.ok(Number(last) >= 2);
    assert.equal(count, last, 'each once');
    for (const server of servers) await server.stop();
  });

  it('what cannot be reached, or is no database, is refused in one sentence that does not tell the password', () => {
    for (const [url, expected] of [
      ['postgres://someone:hunter2@127.0.0.1:1/x', /cannot be reached/],
      [postgres.url.replace('postgres@', 'postgres:hunter2@') + '/missing', /"missing" does not exist/],
      ['postgres://127.0.0.1/x?no_such_option=1', /no_such_option/],
    ]) {
      const result = run(['verify', '--store', url]);
      assert.notEqual(result.status, 0);
      assert.match(result.stderr, expected);
      assert.equal(result.stderr.trim().split('\n').length, 1);
      assert.ok(!(result.stdout + result.stderr).includes('hunter2'));
    }
  });

  it('the password is not in the ready line', async () => {
    const store = makeDatabase(postgres.url).replace('postgres@', 'postgres:hunter2@');
    const server = await start({ store });
    await server.stop();
    assert.ok(!server.output().includes('hunter2'));
    assert.match(server.readyLine, /store postgres:\/\/postgres@127/);
  });

  it('a server that may lose what it has confirmed is refused', async () => {
    const store = makeDatabase(postgres.url);
    const database = new URL(store).pathname.slice(1);
    postgres.sql(`ALTER DATABASE ${database} SET synchronous_commit = off`);
    const lazy = run(['migrate', '--store', store]);
    assert.notEqual(lazy.status, 0);
    assert.match(lazy.stderr, /synchronous_commit=off/);
    const careless = new Postgres(['fsync=off']);
    try {
      const result = run(['migrate', '--store', `${careless.url}/postgres`]);
      assert.notEqual(result.status, 0);
      assert.match(result.stderr, /fsync=off/);
    } finally {
      careless.destroy();
    }
  });
});
