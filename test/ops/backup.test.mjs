// SPDX-License-Identifier: Apache-2.0
// What docs/operations.md says of backups, done: a copy made beside a running server is sound, and a server started on it
// has what was acknowledged before.

import assert from 'node:assert/strict';
import { join } from 'node:path';
import { describe, it } from 'node:test';

import { ok } from '../lib/client.mjs';
import { makeDatabase, Postgres } from '../lib/postgres.mjs';
import { run, start, tempDir } from '../lib/server.mjs';
import { buy, World } from '../lib/world.mjs';
import { read, tool } from './lib/files.mjs';

const TABLES_TO_EMPTY = /```sql\nBEGIN;\n(DELETE FROM changes;[\s\S]*?)COMMIT;\n```/;

/** A hold and a sale, then a copy, then another hold that the copy does not have. */
async function sellAndCopy(server, copy) {
  const organization = await new World(server).organization();
  const event = await organization.event();
  const buyer = organization.buyer();
  const hold = await event.hold(buyer, event.seats[0]);
  const sold = await buy(event, organization.buyer(), [event.seats[1]]);
  await copy();
  await event.hold(organization.buyer(), event.seats[2]);
  return { organization, event, buyer, hold, sold };
}

async function checkCopy(store, { secret, organization, event, buyer, hold, sold }) {
  const verified = run(['verify', '--store', store]);
  assert.equal(verified.status, 0, verified.stdout + verified.stderr);
  const server = await start({ store, secret });
  const world = new World(server);
  const mine = ok(await world.caller('buyer', organization.id, buyer.user).get('/api/holds'));
  assert.deepEqual(mine.map((one) => one.hold_id), [hold.hold_id]);
  const seats = ok(await world.caller('admin', organization.id).get(`${event.path}/seats`));
  assert.deepEqual(seats.slice(0, 3).map((seat) => seat.status), ['held', 'sold', 'available']);
  const [ticket] = ok(await world.caller('admin', organization.id).get(`/api/checkouts/${sold.checkout_id}`)).tickets;
  assert.equal(ticket.seat_id, event.seats[1].seat_id);
  // It works on: somebody takes a seat.
  ok(await world.caller('buyer', organization.id).post(`${event.path}/seats/${event.seats[2].seat_id}/reserve`, {}), 201);
  await server.stop();
}

describe('a backup of SQLite, beside the running server', () => {
  for (const [name, command] of [['VACUUM INTO', (to) => `VACUUM INTO '${to}'`], ['.backup', (to) => `.backup '${to}'`]]) {
    it(`by ${name} is whole, sound, and can be served`, async () => {
      const server = await start({ store: undefined, database: join(tempDir(), 'holdfast.db') });
      const copy = join(tempDir(), 'copy.db');
      const made = await sellAndCopy(server, async () => {
        const { status, output } = tool('sqlite3', [server.database, command(copy)]);
        assert.equal(status, 0, output);
      });
      await server.stop();
      await checkCopy(`sqlite:${copy}`, { ...made, secret: server.secret });
    });
  }
});

describe('a dump of PostgreSQL, beside the running server', () => {
  it('is sound after the feed was emptied, and can be served', async () => {
    const postgres = new Postgres();
    const [from, to] = [makeDatabase(postgres.url), makeDatabase(postgres.url)];
    const server = await start({ store: from });
    const dump = join(tempDir(), 'holdfast.dump');
    const made = await sellAndCopy(server, async () => {
      const { status, output } = tool('pg_dump', ['-Fc', '-f', dump, from]);
      assert.equal(status, 0, output);
    });
    await server.stop();
    const restored = tool('pg_restore', ['--exit-on-error', '-d', to, dump]);
    assert.equal(restored.status, 0, restored.output);
    const [, statements] = TABLES_TO_EMPTY.exec(read('docs/operations.md'));
    postgres.sql(`BEGIN; ${statements} COMMIT`, new URL(to).pathname.slice(1));
    await checkCopy(to, { ...made, secret: server.secret });
    postgres.destroy();
  });
});
