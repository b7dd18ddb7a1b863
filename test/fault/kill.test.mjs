// SPDX-License-Identifier: Apache-2.0
// kill -9 under load, again and again: whatever was acknowledged is there after the restart, nothing is sold or held
// twice, and `holdfast verify` finds nothing broken. Timers and payments go on where they were.

import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, describe, it } from 'node:test';

import { fails, ok, send } from '../lib/client.mjs';
import { binary, run, start, tempDir } from '../lib/server.mjs';
import { openEventStream } from '../lib/sse.mjs';
import { uuid } from '../lib/token.mjs';
import { pause, waitFor, waitUntilUnix } from '../lib/wait.mjs';
import { block, Event, importDocument, layoutOf, Organization, World } from '../lib/world.mjs';

/** The same organization and event, as seen through a server that was started again. */
function again(server, event) {
  const organization = new Organization(new World(server), event.organization.id);
  return Object.assign(new Event(organization, event.id), { seats: event.seats });
}

const clean = async (server) => {
  const proof = await server.verify();
  assert.equal(proof.status, 0, proof.stdout + proof.stderr);
};

describe('kill -9', { concurrency: 4 }, () => {
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
    await clean(server);
  };

  it('under load, three times: every acknowledged hold, ticket and release is there', async () => {
    const server = await begin();
    const organization = await new World(server).organization();
    let event = await organization.event({ layout: layoutOf(block('A', 1, Array(30).fill(50), { price: 100 })) });
    const acknowledged = new Map(); // seat id → {state: 'held' | 'sold' | 'free', user, hold?, code?}
    let next = 0;

    for (let round = 0; round < 3; round++) {
      let stopped = false;
      const workers = Array.from({ length: 12 }, async () => {
        while (!stopped && next < event.seats.length) {
          const seat = event.seats[next++];
          const user = organization.buyer();
          const fate = next % 3;
          try {
            const hold = await event.reserve(user, seat, {}, { limitMs: 8000 });
            if (hold.status !== 201) continue;
            const certain = { state: 'held', user: user.user, hold: hold.body.data.hold_id };
            acknowledged.set(seat.seat_id, certain);
            if (fate === 0) {
              acknowledged.delete(seat.seat_id); // between the request and its answer anything may be true
              const released = await user.del(`/api/holds/${certain.hold}`, { limitMs: 8000 });
              if (released.status === 200) acknowledged.set(seat.seat_id, { state: 'free' });
            } else if (fate === 1) {
              const checkout = await event.checkout(user, {}, { limitMs: 8000 });
              if (checkout.status !== 201) continue;
              acknowledged.delete(seat.seat_id);
              const paid = await user.post(`/api/checkouts/${checkout.body.data.checkout_id}/complete`, { payment_token: 'tok_ok' }, { limitMs: 8000 });
              if (paid.status === 200) {
                acknowledged.set(seat.seat_id, { state: 'sold', user: user.user, checkout: checkout.body.data.checkout_id, code: paid.body.data.tickets[0].code });
              }
            }
          } catch {
            return; // the connection broke: nothing was acknowledged
          }
        }
      });
      await waitFor('some work to be done', () => acknowledged.size >= (round + 1) * 60, undefined, 5);
      await server.kill9();
      stopped = true;
      await Promise.allSettled(workers);
      await clean(server);
      await server.launch();
      event = again(server, event);
      const seats = new Map((await event.list()).map((seat) => [seat.seat_id, seat.status]));
      const holds = new Map();
      let cursor;
      do {
        const response = await event.organization.admin.get(`${event.adminPath}/holds${cursor ? `?after=${encodeURIComponent(cursor)}` : ''}`);
        for (const row of ok(response)) holds.set(row.seat_id, row);
        cursor = response.body.next;
      } while (cursor);
      for (const [seat, was] of acknowledged) {
        const expected = { held: 'held', sold: 'sold', free: 'available' }[was.state];
        assert.equal(seats.get(seat), expected, `round ${round}: seat ${seat} was acknowledged as ${was.state}`);
        if (was.state === 'held') assert.equal(holds.get(seat)?.hold_id, was.hold);
        if (was.state === 'sold') {
          const buyer = event.organization.buyer(was.user);
          assert.equal(ok(await buyer.get(`/api/checkouts/${was.checkout}`)).tickets[0].code, was.code);
        }
      }
    }
    await finish(server);
  });

  it('timers fire after a restart, for holds that are due then and for those that became due meanwhile', async () => {
    const server = await begin();
    const organization = await new World(server).organization();
    let event = await organization.event({ policy: { hold_ttl_seconds: 3, release_grace_seconds: 0 } });
    const overdue = await event.hold(organization.buyer(), event.seats[0]);
    ok(await event.patch({ policy: { hold_ttl_seconds: 8, hold_max_seconds: 8 } }));
    const due = await event.hold(organization.buyer(), event.seats[1]);
    ok(await event.patch({ policy: { hold_ttl_seconds: 600, hold_max_seconds: 600 } }));
    const later = await event.hold(organization.buyer(), event.seats[2]);
    await server.kill9();
    await waitUntilUnix(overdue.held_until_unix + 0.5);
    await server.launch();
    event = again(server, event);
    await waitFor('the overdue hold to be released at start', async () => (await event.status(overdue.seat_id)) === 'available');
    await waitFor('the other to be released in its time', async () => (await event.status(due.seat_id)) === 'available');
    assert.ok(Date.now() / 1000 >= due.held_until_unix - 0.01, 'not before its time');
    assert.equal(await event.status(later.seat_id), 'held');
    const rows = await event.audit({ action: 'seat_hold_expired' });
    assert.deepEqual(rows.map((row) => row.entity_id).sort(), [overdue.hold_id, due.hold_id].sort());
    await finish(server);
  });

  for (const token of ['tok_slow', 'tok_unknown']) {
    it(`in the middle of a payment (${token}): it is settled after the restart, once`, async () => {
      const server = await begin();
      const organization = await new World(server).organization();
      let event = await organization.event();
      const user = uuid();
      let buyer = organization.buyer(user);
      await event.hold(buyer, event.seats[0]);
      const { checkout_id: id } = ok(await event.checkout(buyer), 201);
      const answer = buyer.post(`/api/checkouts/${id}/complete`, { payment_token: token }).catch(() => undefined);
      await waitFor('the payment to be under way', async () => ok(await buyer.get(`/api/checkouts/${id}`)).status === 'processing', undefined, 10);
      await server.kill9();
      await answer;
      await clean(server);
      await server.launch();
      event = again(server, event);
      buyer = event.organization.buyer(user);
      const final = await waitFor('the payment to be settled', async () => {
        const checkout = ok(await buyer.get(`/api/checkouts/${id}`));
        return checkout.status === 'completed' ? checkout : undefined;
      }, 60000, 100);
      assert.equal(final.tickets.length, 1);
      assert.equal(await event.status(event.seats[0].seat_id), 'sold');
      assert.equal((await event.audit({ action: 'checkout_completed' })).length, 1);
      await finish(server);
    });
  }

  it('in the middle of an import: the store is sound and the import can be done again', async () => {
    const dir = tempDir();
    const database = join(dir, 'holdfast.db');
    const file = join(dir, 'import.json');
    const document = importDocument({ organization: { id: uuid(), name: 'Ours' }, event: { id: uuid() }, layout: layoutOf(block('A', 1, Array(1000).fill(100))) });
    writeFileSync(file, JSON.stringify(document));
    assert.equal(run(['migrate', '--store', `sqlite:${database}`]).status, 0);
    for (const delay of [60, 150, 300]) {
      const child = spawn(binary, ['import', '--store', `sqlite:${database}`, file], { stdio: 'ignore' });
      const ended = new Promise((resolve) => child.on('close', resolve));
      await pause(delay);
      child.kill('SIGKILL');
      if ((await ended) === 0) break;
      const proof = run(['verify', '--store', `sqlite:${database}`]);
      assert.equal(proof.status, 0, proof.stdout + proof.stderr);
    }
    const last = run(['import', '--store', `sqlite:${database}`, file]);
    assert.ok(last.status === 0 || /exists already/.test(last.stderr), last.stderr);
    const server = await begin({ dir, database });
    const buyer = new World(server).caller('buyer', document.organization.id);
    assert.equal(ok(await buyer.get(`/api/events/${document.event.id}/occupancy`)).total, 100000);
    await finish(server);
  });

  it('clients that vanish after asking leave either the whole effect or none', async () => {
    const server = await begin();
    const organization = await new World(server).organization();
    const event = await organization.event({ layout: layoutOf(block('A', 1, [100])) });
    const buyers = event.seats.map(() => organization.buyer());
    await Promise.all(event.seats.map((seat, index) =>
      send(`${server.url}${event.path}/seats/${seat.seat_id}/reserve`, { method: 'POST', token: buyers[index].bearer, body: {}, limitMs: index % 7 }).catch(() => {})));
    // Some are still on their way: in the end every seat and its buyer agree.
    await waitFor('seats and holds to agree', async () => {
      const seats = await event.list();
      for (const [index, seat] of seats.entries()) {
        const holds = ok(await buyers[index].get('/api/holds'));
        if (holds.length !== (seat.status === 'held' ? 1 : 0)) return false;
      }
      return true;
    });
    await finish(server);
  });

  it('a stream of changes goes on after the restart from a new snapshot that knows the old holds', async () => {
    const server = await begin();
    const organization = await new World(server).organization();
    let event = await organization.event();
    await event.hold(organization.buyer(), event.seats[0]);
    const first = await openEventStream(event, organization.buyer());
    const last = first.lastId();
    await server.kill9();
    first.close();
    await server.launch();
    event = again(server, event);
    const second = await openEventStream(event, event.organization.buyer(), { lastEventId: last });
    await second.wait('the first event', () => second.events.length > 0);
    assert.equal(second.events[0].event, 'snapshot');
    assert.equal(second.events[0].json.occupancy.held, 1);
    await event.hold(event.organization.buyer(), event.seats[1]);
    await second.waitSeat(1, 'held');
    second.close();
    fails(await event.reserve(event.organization.buyer(), event.seats[0]), 409, 'seat_held_by_another_user');
    await finish(server);
  });
});
