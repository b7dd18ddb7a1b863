// SPDX-License-Identifier: Apache-2.0
// Idempotency-Key: the same request again gives the same answer, also a refusal, also after a restart.

import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';

import { fails, ok } from '../lib/client.mjs';
import { start } from '../lib/server.mjs';
import { uuid } from '../lib/token.mjs';
import { waitFor } from '../lib/wait.mjs';
import { block, layoutOf, metric, World } from '../lib/world.mjs';

describe('idempotency', { concurrency: 12 }, () => {
  let server;
  let world;
  let organization;

  before(async () => {
    server = await start();
    world = new World(server);
    organization = await world.organization();
  });
  after(() => server.stop());

  it('a reserve with the same key is answered 201 with the same hold again', async () => {
    const event = await organization.event();
    const buyer = organization.buyer();
    const key = uuid();
    const replays = await metric(server, 'holdfast_idempotent_replays_total');
    const first = ok(await event.reserve(buyer, event.seats[0], { source: 'web' }, { key }), 201);
    const second = ok(await event.reserve(buyer, event.seats[0], { source: 'web' }, { key }), 201);
    assert.equal(second.hold_id, first.hold_id);
    assert.equal(second.held_until, first.held_until);
    assert.deepEqual(Object.keys(second).sort(), Object.keys(first).sort());
    assert.ok((await metric(server, 'holdfast_idempotent_replays_total')) >= replays + 1);
    assert.equal((await event.audit({ action: 'seat_reserved' })).length, 1);
  });

  it('the answer is kept even when the seat has long been released', async () => {
    const event = await organization.event();
    const buyer = organization.buyer();
    const key = uuid();
    const first = ok(await event.reserve(buyer, event.seats[0], {}, { key }), 201);
    ok(await buyer.del(`/api/holds/${first.hold_id}`));
    assert.equal(ok(await event.reserve(buyer, event.seats[0], {}, { key }), 201).hold_id, first.hold_id);
    assert.equal(await event.status(event.seats[0].seat_id), 'available', 'a replay does nothing');
    const without = ok(await event.reserve(buyer, event.seats[0]), 201);
    assert.notEqual(without.hold_id, first.hold_id);
  });

  it('the same key with another body is refused', async () => {
    const event = await organization.event();
    const buyer = organization.buyer();
    const key = uuid();
    ok(await event.reserve(buyer, event.seats[0], { source: 'web' }, { key }), 201);
    fails(await event.reserve(buyer, event.seats[0], { source: 'scanner' }, { key }), 409, 'idempotency_key_reused');
    fails(await event.reserve(buyer, event.seats[0], { source: 'web', cart_token: 'x' }, { key }), 409, 'idempotency_key_reused');
    ok(await event.reserve(buyer, event.seats[0], { source: 'web' }, { key }), 201);
  });

  it('a key belongs to one user, one method and one path', async () => {
    const event = await organization.event();
    const [buyer, other] = [organization.buyer(), organization.buyer()];
    const key = uuid();
    const first = ok(await event.reserve(buyer, event.seats[0], {}, { key }), 201);
    const second = ok(await event.reserve(buyer, event.seats[1], {}, { key }), 201);
    assert.notEqual(second.hold_id, first.hold_id);
    fails(await event.reserve(other, event.seats[0], {}, { key }), 409, 'seat_held_by_another_user');
    ok(await event.reserve(other, event.seats[2], {}, { key }), 201);
    ok(await event.checkout(buyer, {}, { key }), 201);
    const elsewhere = await world.organization();
    const foreign = await elsewhere.event();
    ok(await foreign.reserve(elsewhere.buyer(buyer.user), foreign.seats[0], {}, { key }), 201);
  });

  it('a refusal is kept: the same 409 even when the seat has become free', async () => {
    const event = await organization.event();
    const [holder, buyer] = [organization.buyer(), organization.buyer()];
    const key = uuid();
    const hold = await event.hold(holder, event.seats[0]);
    fails(await event.reserve(buyer, event.seats[0], {}, { key }), 409, 'seat_held_by_another_user');
    ok(await holder.del(`/api/holds/${hold.hold_id}`));
    fails(await event.reserve(buyer, event.seats[0], {}, { key }), 409, 'seat_held_by_another_user');
    ok(await event.reserve(buyer, event.seats[0]), 201);
  });

  it('several seats, extension, release, checkout, payment and cancel are replayed', async () => {
    const event = await organization.event({ policy: { hold_ttl_seconds: 60, hold_max_seconds: 600, checkout_extension_seconds: 60 } });
    const buyer = organization.buyer();
    const keys = Array.from({ length: 7 }, uuid);
    const twice = async (status, call) => {
      const [first, second] = [ok(await call(), status), ok(await call(), status)];
      return [first, second];
    };
    const [held, heldAgain] = await twice(201, () => event.holdMany(buyer, event.seats.slice(0, 4), {}, { key: keys[0] }));
    assert.deepEqual(heldAgain.holds.map((hold) => hold.hold_id), held.holds.map((hold) => hold.hold_id));
    const [best, bestAgain] = await twice(201, () => buyer.post(`${event.path}/holds`, { quantity: 2 }, { key: keys[1] }));
    assert.deepEqual(bestAgain.holds.map((hold) => hold.hold_id), best.holds.map((hold) => hold.hold_id));
    assert.equal((await event.occupancy()).held, 6);
    const one = held.holds[0].hold_id;
    const [extended, extendedAgain] = await twice(200, () => buyer.post(`/api/holds/${one}/extend`, {}, { key: keys[2] }));
    assert.equal(extendedAgain.held_until, extended.held_until, 'one extension, not two');
    assert.equal(ok(await buyer.get(`/api/holds/${one}`)).held_until, extended.held_until);
    await twice(200, () => buyer.del(`/api/holds/${held.holds[3].hold_id}`, { key: keys[3] }));
    const paying = { hold_ids: held.holds.slice(0, 2).map((hold) => hold.hold_id) };
    const [started, startedAgain] = await twice(201, () => event.checkout(buyer, paying, { key: keys[4] }));
    assert.equal(startedAgain.checkout_id, started.checkout_id);
    const [paid, paidAgain] = await twice(200, () =>
      buyer.post(`/api/checkouts/${started.checkout_id}/complete`, { payment_token: 'tok_ok' }, { key: keys[5] }));
    assert.deepEqual(paidAgain.tickets, paid.tickets);
    assert.equal(paid.tickets.length, 2);
    const rest = ok(await event.checkout(buyer), 201);
    const [cancelled, cancelledAgain] = await twice(200, () => buyer.post(`/api/checkouts/${rest.checkout_id}/cancel`, {}, { key: keys[6] }));
    assert.deepEqual(cancelledAgain, cancelled);
    const occupancy = await event.occupancy();
    assert.deepEqual([occupancy.held, occupancy.sold], [0, 2]);
  });

  it('a declined payment is replayed as declined', async () => {
    const event = await organization.event();
    const buyer = organization.buyer();
    const key = uuid();
    await event.hold(buyer, event.seats[0]);
    const checkout = ok(await event.checkout(buyer), 201);
    const pay = () => buyer.post(`/api/checkouts/${checkout.checkout_id}/complete`, { payment_token: 'tok_declined' }, { key });
    fails(await pay(), 402, 'payment_failed');
    fails(await pay(), 402, 'payment_failed');
  });

  it('admin commands are replayed: one event, one organization, one change', async () => {
    const own = await world.organization();
    const [key, patchKey, orgKey] = [uuid(), uuid(), uuid()];
    const made = ok(await own.admin.post('/api/admin/events', { name: 'Once' }, { key }), 201);
    const again = ok(await own.admin.post('/api/admin/events', { name: 'Once' }, { key }), 201);
    assert.equal(again.event_id, made.event_id);
    assert.equal(ok(await own.admin.get('/api/admin/events')).length, 1);
    fails(await own.admin.post('/api/admin/events', { name: 'Twice' }, { key }), 409, 'idempotency_key_reused');
    ok(await own.admin.patch(`/api/admin/events/${made.event_id}`, { status: 'published' }, { key: patchKey }));
    ok(await own.admin.patch(`/api/admin/events/${made.event_id}`, { status: 'published' }, { key: patchKey }));
    const operator = world.operator();
    const first = ok(await operator.post('/api/admin/organizations', { name: 'One' }, { key: orgKey }), 201);
    const second = ok(await operator.post('/api/admin/organizations', { name: 'One' }, { key: orgKey }), 201);
    assert.deepEqual(second, first);
  });

  it('a key still being worked on is refused as in progress', async () => {
    const event = await organization.event();
    const buyer = organization.buyer();
    const key = uuid();
    await event.hold(buyer, event.seats[0]);
    const checkout = ok(await event.checkout(buyer), 201);
    const pay = () => buyer.post(`/api/checkouts/${checkout.checkout_id}/complete`, { payment_token: 'tok_slow' }, { key });
    const first = pay();
    await waitFor('the payment to be under way', async () =>
      ok(await buyer.get(`/api/checkouts/${checkout.checkout_id}`)).status === 'processing');
    fails(await pay(), 409, 'request_in_progress');
    ok(await first, 200);
    ok(await pay(), 200);
  });

  it('a storm of the same request makes one hold, every answer 201 with it or in progress', async () => {
    const event = await organization.event();
    const buyer = organization.buyer();
    const key = uuid();
    const answers = await Promise.all(Array.from({ length: 50 }, () => event.reserve(buyer, event.seats[0], {}, { key })));
    const holds = new Set();
    for (const answer of answers) {
      if (answer.status === 201) holds.add(answer.body.data.hold_id);
      else fails(answer, 409, 'request_in_progress');
    }
    assert.equal(holds.size, 1);
    assert.equal((await event.audit({ action: 'seat_reserved' })).length, 1);
  });

  it('a storm over best available makes one set of holds', async () => {
    const event = await organization.event({ layout: layoutOf(block('A', 1, [20])) });
    const buyer = organization.buyer();
    const key = uuid();
    const answers = await Promise.all(Array.from({ length: 30 }, () => buyer.post(`${event.path}/holds`, { quantity: 2 }, { key })));
    const sets = new Set();
    for (const answer of answers) {
      if (answer.status === 201) sets.add(answer.body.data.holds.map((hold) => hold.hold_id).join());
      else fails(answer, 409, 'request_in_progress');
    }
    assert.equal(sets.size, 1);
    assert.equal((await event.occupancy()).held, 2);
  });

  it('a key of 255 characters is taken, a longer or empty one refused', async () => {
    const event = await organization.event();
    const buyer = organization.buyer();
    ok(await event.reserve(buyer, event.seats[0], {}, { key: 'k'.repeat(255) }), 201);
    fails(await event.reserve(buyer, event.seats[1], {}, { key: 'k'.repeat(256) }), 400, 'invalid_request');
    fails(await event.reserve(buyer, event.seats[1], {}, { key: '' }), 400, 'invalid_request');
    assert.equal(await event.status(event.seats[1].seat_id), 'available');
  });
});

describe('idempotency over a restart', () => {
  it('keys are kept in the store: the same answers after kill -9, and after a clean stop', async () => {
    let server = await start();
    let organization = await new World(server).organization();
    let event = await organization.event();
    const user = uuid();
    const keys = [uuid(), uuid(), uuid()];
    let buyer = organization.buyer(user);
    const hold = ok(await event.reserve(buyer, event.seats[0], {}, { key: keys[0] }), 201);
    await event.hold(organization.buyer(), event.seats[1]);
    fails(await event.reserve(buyer, event.seats[1], {}, { key: keys[1] }), 409, 'seat_held_by_another_user');
    const checkout = ok(await event.checkout(buyer, {}, { key: keys[2] }), 201);
    for (const end of ['kill9', 'stop']) {
      await server[end]();
      await server.launch();
      organization = new (organization.constructor)(new World(server), organization.id);
      event = Object.assign(new (event.constructor)(organization, event.id), { seats: event.seats });
      buyer = organization.buyer(user);
      assert.equal(ok(await event.reserve(buyer, event.seats[0], {}, { key: keys[0] }), 201).hold_id, hold.hold_id);
      fails(await event.reserve(buyer, event.seats[0], { source: 'scanner' }, { key: keys[0] }), 409, 'idempotency_key_reused');
      fails(await event.reserve(buyer, event.seats[1], {}, { key: keys[1] }), 409, 'seat_held_by_another_user');
      assert.equal(ok(await event.checkout(buyer, {}, { key: keys[2] }), 201).checkout_id, checkout.checkout_id);
    }
    await server.stop();
    const proof = await server.verify();
    assert.equal(proof.status, 0, proof.stdout + proof.stderr);
  });
});
