// SPDX-License-Identifier: Apache-2.0
// The ways to PostgreSQL, and what happens on them: PgBouncer, TLS, a unix socket, a standby, a full server, a node that
// freezes in the middle of a transaction. Each time a clear sentence or 503, and service back by itself.

import assert from 'node:assert/strict';
import { spawn, spawnSync } from 'node:child_process';
import { chmodSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';

import { fails } from '../lib/client.mjs';
import { Bouncer, makeDatabase, Postgres, Proxy, psql } from '../lib/postgres.mjs';
import { freePort, run, start, tempDir } from '../lib/server.mjs';
import { waitFor } from '../lib/wait.mjs';
import { block, Event, layoutOf, Organization, World } from '../lib/world.mjs';

describe('the way to PostgreSQL', () => {
  let postgres;
  const things = [];
  const keep = (thing) => {
    things.push(thing);
    return thing;
  };
  before(() => {
    postgres = keep(new Postgres());
  });
  after(async () => {
    for (const thing of things.reverse()) await (thing.destroy ? thing.destroy() : thing.close());
  });

  const at = (url, port) => url.replace(/:\d+\//, `:${port}/`);
  const heldInStore = (store) => new Map(psql(store, "SELECT seat_id, id FROM seat_holds WHERE status = 'active'"));

  /** A node with an organization and an event. */
  const begin = async (store, options = {}) => {
    const server = await start({ store, ...options });
    const organization = await new World(server).organization();
    const event = await organization.event({ layout: layoutOf(block('A', 1, [20, 20])) });
    return { server, organization, event };
  };

  const holds = (event, seat) => event.hold(event.organization.buyer(), event.seats[seat]);
  const holdsAgain = (event, seat) =>
    waitFor('service again', async () => (await event.reserve(event.organization.buyer(), event.seats[seat])).status === 201);

  const ends = async (server, store) => {
    await server.stop();
    const proof = run(['verify', '--store', store]);
    assert.equal(proof.status, 0, proof.stdout + proof.stderr);
  };

  /** Refused at start, in one sentence. */
  const refused = (store, expected, env) => {
    const result = run(['migrate', '--store', store], { env });
    assert.notEqual(result.status, 0);
    assert.match(result.stderr, expected);
    assert.equal(result.stderr.trim().split('\n').length, 1, result.stderr);
  };

  it('PgBouncer in session mode: works, and comes back after PgBouncer was killed', async () => {
    const bouncer = keep(new Bouncer(postgres, await freePort()));
    await bouncer.start();
    const direct = makeDatabase(postgres.url);
    const { server, organization, event } = await begin(at(direct, bouncer.port));
    const hold = await holds(event, 0);
    assert.equal(heldInStore(direct).get(event.seats[0].seat_id), hold.hold_id);
    bouncer.kill();
    fails(await event.reserve(organization.buyer(), event.seats[1]), 503, 'store_unavailable');
    assert.equal((await fetch(`${server.url}/readyz`)).status, 503);
    await bouncer.start();
    await waitFor('readiness', async () => (await fetch(`${server.url}/readyz`)).status === 200);
    await holdsAgain(event, 1);
    await ends(server, direct);
  });

  it('PgBouncer with fewer connections than a node wants: waits or 503, nothing breaks', async () => {
    const bouncer = keep(new Bouncer(postgres, await freePort(), { default_pool_size: 3, query_wait_timeout: 1 }));
    await bouncer.start();
    const direct = makeDatabase(postgres.url);
    const result = run(['migrate', '--store', at(direct, bouncer.port)]);
    assert.equal(result.status, 0, result.stderr);
    const { server, organization, event } = await begin(at(direct, bouncer.port));
    await holds(event, 0);
    // Lists and lookups may find no connection left; they say so, and writing goes on.
    const list = await organization.admin.get(`/api/admin/audit?event_id=${event.id}`);
    assert.ok([200, 503].includes(list.status), `answered ${list.status}`);
    await holds(event, 1);
    await ends(server, direct);
  });

  it('TLS: sslmode=verify-full with a CA of our own; another CA is refused', async () => {
    const dir = mkdtempSync(join(tmpdir(), 'holdfast-tls-'));
    keep({ destroy: () => rmSync(dir, { recursive: true, force: true }) });
    chmodSync(dir, 0o755);
    const openssl = (...args) => {
      const result = spawnSync('openssl', args, { cwd: dir, encoding: 'utf8', timeout: 30000 });
      assert.equal(result.status, 0, result.stderr);
    };
    writeFileSync(join(dir, 'names'), 'subjectAltName=DNS:localhost\n');
    for (const name of ['ca', 'stranger']) {
      openssl('req', '-x509', '-newkey', 'rsa:2048', '-nodes', '-keyout', `${name}.key`, '-out', `${name}.crt`, '-days', '2', '-subj', `/CN=${name}`);
    }
    openssl('req', '-newkey', 'rsa:2048', '-nodes', '-keyout', 'server.key', '-out', 'server.csr', '-subj', '/CN=localhost');
    openssl('x509', '-req', '-in', 'server.csr', '-CA', 'ca.crt', '-CAkey', 'ca.key', '-CAcreateserial', '-days', '2', '-extfile', 'names', '-out', 'server.crt');
    chmodSync(join(dir, 'server.key'), 0o600);
    if (process.getuid() === 0) assert.equal(spawnSync('chown', ['postgres', join(dir, 'server.key')]).status, 0);
    const secured = keep(new Postgres(['ssl=on', `ssl_cert_file=${dir}/server.crt`, `ssl_key_file=${dir}/server.key`]));
    const plain = makeDatabase(secured.url);
    const store = `${plain.replace('@127.0.0.1:', '@localhost:')}?hostaddr=127.0.0.1&sslmode=verify-full&sslrootcert=${dir}`;
    refused(`${store}/stranger.crt`, /certificate verify failed/);
    refused(`${store}/ca.crt`.replace('@localhost:', '@elsewhere:'), /does not match host name/);
    const { server, event } = await begin(`${store}/ca.crt`);
    await holds(event, 0);
    const [[all, encrypted]] = psql(plain, `
      SELECT count(*), count(*) FILTER (WHERE s.ssl) FROM pg_stat_activity AS a JOIN pg_stat_ssl AS s USING (pid)
      WHERE a.datname = current_database() AND a.application_name = 'holdfast'`);
    assert.ok(Number(all) > 0);
    assert.equal(encrypted, all, 'every connection of the node is encrypted');
    await ends(server, plain);
  });

  it('a unix socket: works, and comes back after a restart', async () => {
    const dir = mkdtempSync(join(tmpdir(), 'holdfast-socket-'));
    keep({ destroy: () => rmSync(dir, { recursive: true, force: true }) });
    chmodSync(dir, 0o777);
    const local = keep(new Postgres([`unix_socket_directories=${dir}`, 'listen_addresses=127.0.0.1']));
    const direct = makeDatabase(local.url);
    const store = `postgres://postgres@/${new URL(direct).pathname.slice(1)}?host=${encodeURIComponent(dir)}&port=${local.port}`;
    const { server, event } = await begin(store);
    await holds(event, 0);
    assert.deepEqual(
      psql(direct, "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND application_name = 'holdfast' AND client_addr IS NOT NULL"),
      [['0']],
    );
    local.restart('fast', `unix_socket_directories=${dir}`);
    await holdsAgain(event, 1);
    await ends(server, direct);
  });

  it('at the limit of connections of the whole server: one sentence at start, 503 while running, then service again', async () => {
    const small = keep(new Postgres(['max_connections=12', 'superuser_reserved_connections=3']));
    small.sql('CREATE ROLE plain LOGIN');
    const store = makeDatabase(small.url);
    small.sql(`ALTER DATABASE ${new URL(store).pathname.slice(1)} OWNER TO plain`);
    const plain = store.replace('postgres@', 'plain@');
    const { server, organization, event } = await begin(plain);
    await holds(event, 0);
    // Others take what is left, and what the node gives up.
    psql(store, "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = 'plain'");
    const crowd = keep(new Crowd(plain, 9));
    await crowd.gather();
    refused(plain, /too many clients|remaining connection slots/);
    fails(await event.reserve(organization.buyer(), event.seats[1]), 503, 'store_unavailable');
    crowd.destroy();
    await holdsAgain(event, 2);
    await ends(server, store);
  });

  it('a standby: refused alone; with both in the URL the node goes on at the one that was promoted', async () => {
    const primary = keep(new Postgres());
    const store = makeDatabase(primary.url);
    assert.equal(run(['migrate', '--store', store]).status, 0);
    const standby = keep(new Postgres([], { primary }));
    const name = new URL(store).pathname;
    const secret = join(tempDir(), 'secret');
    writeFileSync(secret, 'a secret that is long enough for everybody', { mode: 0o600 });
    const alone = run(['serve', '--listen', '127.0.0.1:0', '--store', `${standby.url}${name}`, '--jwt-secret-file', secret]);
    assert.notEqual(alone.status, 0);
    assert.match(alone.stderr, /cannot be written to: .*read-only/);
    const both = `postgres://postgres@127.0.0.1:${primary.port},127.0.0.1:${standby.port}${name}?target_session_attrs=read-write`;
    const { server, organization, event } = await begin(both);
    const hold = await holds(event, 0);
    await waitFor('the standby to have it', async () => heldInStore(`${standby.url}${name}`).size === 1);
    primary.kill();
    fails(await event.reserve(organization.buyer(), event.seats[1]), 503, 'store_unavailable');
    standby.promote();
    await holdsAgain(event, 2);
    assert.equal(heldInStore(`${standby.url}${name}`).get(event.seats[0].seat_id), hold.hold_id);
    await ends(server, `${standby.url}${name}`);
  });

  it('a node that freezes before COMMIT: its transaction ends, another node goes on, and it finds out when it thaws', async () => {
    const proxy = keep(await new Proxy(postgres.port).listen());
    const store = makeDatabase(postgres.url);
    const { server, organization, event } = await begin(at(store, proxy.port));
    const other = await start({ store, secret: server.secret });
    const there = Object.assign(new Event(new Organization(new World(other), organization.id), event.id), { seats: event.seats });
    const buyer = organization.buyer();
    await event.hold(buyer, event.seats[1]); // so that the buyer is known
    let frozen = false;
    proxy.onCommit = () => {
      if (frozen) return 'pass';
      frozen = true;
      server.child.kill('SIGSTOP');
      return 'freeze';
    };
    const answer = event.reserve(buyer, event.seats[0], {}, { limitMs: 60000 });
    await waitFor('the node to freeze', async () => frozen);
    await waitFor('its transaction to end', async () =>
      psql(store, "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND xact_start IS NOT NULL AND pid <> pg_backend_pid()")[0][0] === '0');
    const hold = await there.hold(there.organization.buyer(), there.seats[0]);
    server.child.kill('SIGCONT');
    const late = await answer;
    assert.notEqual(late.status, 201, 'the seat is the other buyer\'s');
    assert.equal(heldInStore(store).get(event.seats[0].seat_id), hold.hold_id);
    await holdsAgain(event, 2);
    await other.stop();
    await ends(server, store);
  });
});

/** Sessions that take up room. */
class Crowd {
  constructor(url, count) {
    this.url = url;
    this.count = count;
    this.children = [];
  }

  async gather() {
    for (let i = 0; i < this.count; i++) this.children.push(spawn('psql', ['-X', '-q', '-d', this.url], { stdio: ['pipe', 'ignore', 'ignore'] }));
    const admin = this.url.replace('plain@', 'postgres@');
    await waitFor('a full server', async () =>
      Number(psql(admin, "SELECT count(*) FROM pg_stat_activity WHERE usename = 'plain'")[0][0]) >= this.count);
  }

  destroy() {
    for (const child of this.children) child.kill();
    this.children = [];
  }
}
