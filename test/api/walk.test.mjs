// SPDX-License-Identifier: Apache-2.0
// A random walk of mixed commands by several users, every answer and every seat compared with the plain model of the
// contract; and the same kind of walk by many at once, where only what holds in any order is checked.
// The seed is printed; HOLDFAST_SEED=… walks the same way again.

import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';

import { ok } from '../lib/client.mjs';
import { Model, random } from '../lib/model.mjs';
import { start } from '../lib/server.mjs';
import { waitFor } from '../lib/wait.mjs';
import { block, layoutOf, World } from '../lib/world.mjs';

const SEED = Number(process.env.HOLDFAST_SEED ?? Math.floor(Math.random() * 2 ** 31));
const STEPS = Number(process.env.HOLDFAST_STEPS ?? 600);

describe(`random walk, seed ${SEED}`, () => {
  let server;
  let organization;

  before(async () => {
    console.log(`# walk seed ${SEED}`);
    server = await start();
    organization = await new World(server).organization();
  });
  after(async () => {
    await server.stop();
    const proof = await server.verify();
    assert.equal(proof.status, 0, proof.stdout + proof.stderr);
  });

  it('one after another, every answer is the model\'s', async () => {
    const rng = random(SEED);
    const event = await organization.event({
      layout: layoutOf(block('A', 1, [6, 6], { price: 700 }), block('B', 1, [8], { price: 300, capacity: 5 })),
      policy: { max_seats_per_user: 4 },
    });
    const model = new Model(event.seats, { maxSeats: 4, blocks: { 'A-1': { price: 700, capacity: 12 }, 'B-1': { price: 300, capacity: 5 } } });
    const users = Array.from({ length: 5 }, () => organization.buyer());
    const admin = organization.admin;
    const seatIds = event.seats.map((seat) => seat.seat_id);
    const trail = [];

    const matches = (expected, response) => {
      const story = () => `step ${trail.length}: ${trail.slice(-6).join(' | ')}\nexpected ${JSON.stringify(expected)}, got ${response.status} ${response.text.slice(0, 300)}`;
      assert.equal(response.status, expected.status, story());
      if (expected.code) assert.ok([expected.code].flat().includes(response.body.error.code), story());
    };
    const someSeats = (count) => {
      const ids = new Set();
      while (ids.size < count) ids.add(rng.pick(seatIds));
      return [...ids];
    };
    const granted = (user, holds, fresh) => {
      const bySeat = new Map(holds.map((hold) => [hold.seat_id, hold.hold_id]));
      for (const id of fresh) model.granted(user, id, bySeat.get(id));
    };

    const commands = {
      async reserve(user) {
        const id = rng.pick(seatIds);
        const expected = model.reserve(user.user, id);
        const response = await event.reserve(user, id);
        matches(expected, response);
        if (response.status === 201) granted(user.user, [response.body.data], [id]);
        if (response.status === 200) assert.equal(response.body.data.hold_id, expected.holds[0]);
      },
      async holdMany(user) {
        const ids = someSeats(2 + rng.below(2));
        const expected = model.holdMany(user.user, ids);
        const response = await event.holdMany(user, ids);
        matches(expected, response);
        if (response.status === 201) granted(user.user, response.body.data.holds, expected.seats);
      },
      async best(user) {
        const quantity = 1 + rng.below(3);
        const response = await event.best(user, { quantity });
        if (response.status === 201) {
          const fresh = response.body.data.holds.map((hold) => hold.seat_id);
          assert.equal(fresh.length, quantity);
          assert.equal(model.refusal(user.user, fresh), undefined, `best available chose seats it may not give: ${fresh}`);
          granted(user.user, response.body.data.holds, fresh);
        } else {
          assert.equal(response.status, 409, response.text);
          assert.ok(['not_enough_seats', 'hold_limit_reached', 'block_at_capacity'].includes(response.body.error.code), response.text);
          if (response.body.error.code === 'hold_limit_reached') assert.ok(model.activeHolds(user.user).length + quantity > 4);
        }
      },
      async release(user) {
        if (model.holds.size === 0) return;
        const id = rng.pick([...model.holds.keys()]);
        const expected = model.release(user.user, id);
        const response = await user.del(`/api/holds/${id}`);
        if (expected.converted) assert.ok([200, 409].includes(response.status), response.text);
        else matches(expected, response);
      },
      async extend(user) {
        const hold = rng.pick(model.activeHolds(user.user));
        if (hold === undefined) return;
        const response = await user.post(`/api/holds/${hold.id}/extend`);
        assert.ok(response.status === 200 || response.body.error.code === 'extension_limit_reached', response.text);
      },
      async checkout(user) {
        const mine = model.activeHolds(user.user).map((hold) => hold.id);
        const named = mine.length > 0 && rng.chance(0.4) ? mine.filter(() => rng.chance(0.6)) : undefined;
        const chosen = named && named.length > 0 ? named : undefined;
        const expected = model.startCheckout(user.user, chosen);
        const response = await event.checkout(user, chosen ? { hold_ids: chosen } : {});
        matches(expected, response);
        if (response.status >= 300) return;
        assert.equal(response.body.data.total_cents, expected.total);
        if (response.status === 200) assert.equal(response.body.data.checkout_id, expected.checkout);
        else model.started(user.user, response.body.data.checkout_id, expected.holds);
      },
      async complete() {
        const checkout = rng.pick([...model.checkouts.values()]);
        if (checkout === undefined) return;
        const pays = rng.chance(0.6);
        const user = users.find((candidate) => candidate.user === checkout.user);
        const expected = model.complete(checkout.user, checkout.id, pays);
        const response = await user.post(`/api/checkouts/${checkout.id}/complete`, { payment_token: pays ? 'tok_ok' : 'tok_declined' });
        matches(expected, response);
        if (response.status === 200) assert.equal(response.body.data.tickets.length, expected.tickets);
      },
      async cancel() {
        const checkout = rng.pick([...model.checkouts.values()]);
        if (checkout === undefined) return;
        const user = users.find((candidate) => candidate.user === checkout.user);
        const expected = model.cancel(checkout.user, checkout.id);
        const response = await user.post(`/api/checkouts/${checkout.id}/cancel`, {});
        matches(expected, response);
        if (expected.released !== undefined) assert.equal(response.body.data.released_count, expected.released);
      },
      async block() {
        const ids = someSeats(1 + rng.below(2));
        matches(model.block(ids), await admin.post(`${event.adminPath}/seats/block`, { seat_ids: ids }));
      },
      async unblock() {
        const ids = someSeats(1 + rng.below(6));
        matches(model.unblock(ids), await admin.post(`${event.adminPath}/seats/unblock`, { seat_ids: ids }));
      },
      async adminRelease() {
        const ids = someSeats(1 + rng.below(4));
        const expected = model.adminRelease(ids);
        const data = ok(await admin.post('/api/admin/seats/release', { seat_ids: ids }));
        assert.equal(data.seats_released, expected);
        assert.equal(data.skipped.length, ids.length - expected);
      },
      async read(user) {
        const holds = ok(await user.get('/api/holds')).map((hold) => hold.hold_id).sort();
        assert.deepEqual(holds, model.activeHolds(user.user).map((hold) => hold.id).sort());
        const checkout = rng.pick([...model.checkouts.values()]);
        if (checkout === undefined) return;
        const owner = users.find((candidate) => candidate.user === checkout.user);
        const data = ok(await owner.get(`/api/checkouts/${checkout.id}`));
        assert.equal(data.status, checkout.status, `step ${trail.length}: ${trail.slice(-6).join(' | ')}`);
        if (checkout.status === 'pending_payment') assert.equal(data.total_cents, model.total(checkout));
      },
    };
    const names = ['reserve', 'reserve', 'reserve', 'reserve', 'holdMany', 'holdMany', 'best', 'release', 'release', 'extend', 'checkout', 'checkout',
      'complete', 'cancel', 'block', 'unblock', 'unblock', 'adminRelease', 'read', 'read'];
    for (let step = 0; step < STEPS; step++) {
      const name = rng.pick(names);
      trail.push(name);
      await commands[name](rng.pick(users));
      const states = (await event.list()).map((seat) => seat.status);
      assert.deepEqual(states, model.states(), `seed ${SEED}, after step ${step}: ${trail.slice(-6).join(' | ')}`);
    }
    const occupancy = await event.occupancy();
    const count = (status) => model.states().filter((state) => state === status).length;
    for (const status of ['available', 'held', 'sold', 'blocked']) assert.equal(occupancy[status], count(status));
  });

  it('many at once: no seat has two owners, every ticket is backed, counters agree', async () => {
    const event = await organization.event({ layout: layoutOf(block('A', 1, [12]), block('B', 1, [12], { capacity: 8 })), policy: { max_seats_per_user: 5 } });
    const owners = new Map();
    const tickets = new Map();
    const walkers = Array.from({ length: 16 }, async (_, number) => {
      const rng = random(SEED + number * 7919 + 1);
      const user = organization.buyer();
      const mine = new Map();
      for (let step = 0; step < 40; step++) {
        const roll = rng.below(10);
        if (roll < 5) {
          const seat = rng.pick(event.seats);
          const response = await event.reserve(user, seat);
          if (response.status === 201 || response.status === 200) {
            const other = owners.get(seat.seat_id);
            assert.ok(other === undefined || other === user.user, 'a seat was granted while another held it');
            owners.set(seat.seat_id, user.user);
            mine.set(response.body.data.hold_id, seat.seat_id);
            assert.ok(mine.size <= 5, 'never more than the limit');
          } else {
            assert.equal(response.status, 409, response.text);
          }
        } else if (roll < 8 && mine.size > 0) {
          const [holdId, seatId] = rng.pick([...mine]);
          // Given up before it is released: whoever gets the seat after that is right.
          owners.delete(seatId);
          mine.delete(holdId);
          ok(await user.del(`/api/holds/${holdId}`));
        } else if (mine.size > 0) {
          const checkout = ok(await event.checkout(user), 201);
          const pays = rng.chance(0.3);
          if (!pays) for (const seatId of mine.values()) owners.delete(seatId);
          const response = await user.post(`/api/checkouts/${checkout.checkout_id}/complete`, { payment_token: pays ? 'tok_ok' : 'tok_declined' });
          if (pays) {
            for (const ticket of ok(response).tickets) {
              assert.ok(!tickets.has(ticket.seat_id), 'a seat is sold once');
              tickets.set(ticket.seat_id, user.user);
            }
          } else {
            assert.equal(response.status, 402, response.text);
          }
          mine.clear();
        }
      }
      return mine;
    });
    const left = await Promise.all(walkers);
    const seats = await event.list();
    for (const seat of seats) if (tickets.has(seat.seat_id)) assert.equal(seat.status, 'sold');
    assert.equal(seats.filter((seat) => seat.status === 'sold').length, tickets.size);
    assert.equal(seats.filter((seat) => seat.status === 'held').length, left.reduce((sum, mine) => sum + mine.size, 0));
    const occupancy = await waitFor('counters to agree', async () => event.occupancy());
    assert.equal(occupancy.sold, tickets.size);
  });
});
