// SPDX-License-Identifier: Apache-2.0
// Commands that meet: two that cannot both be right are sent at the same moment, many times over. Whichever wins, the
// answers, the seats and the store must tell one and the same story.

import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';

import { fails, failsWithOneOf, ok } from '../lib/client.mjs';
import { start } from '../lib/server.mjs';
import { openStream } from '../lib/sse.mjs';
import { uuid } from '../lib/token.mjs';
import { inParallel, pause, waitFor } from '../lib/wait.mjs';
import { block, layoutOf, World } from '../lib/world.mjs';

describe('interplay', { concurrency: 8 }, () => {
  let server;
  let world;
  let organization;

  before(async () => {
    server = await start();
    world = new World(server);
    organization = await world.organization();
  });
  after(async () => {
    await server.stop();
    const proof = await server.verify();
    assert.equal(proof.status, 0, proof.stdout + proof.stderr);
  });

  const row = (count, policy = {}) => organization.event({ layout: layoutOf(block('A', 1, [count])), policy });
  const complete = (caller, id, token = 'tok_ok') => caller.post(`/api/checkouts/${id}/complete`, { payment_token: token });

  it('pay and cancel: one of them wins, never both', async () => {
    const event = await row(30);
    const outcomes = await Promise.all(event.seats.map(async (seat, index) => {
      const buyer = organization.buyer();
      await event.hold(buyer, seat);
      const { checkout_id: id } = ok(await event.checkout(buyer), 201);
      const calls = [() => complete(buyer, id), () => buyer.post(`/api/checkouts/${id}/cancel`, {})];
      const [first, second] = index % 2 ? calls : calls.reverse();
      const answers = await Promise.all([first(), second()]);
      const [paid, cancelled] = index % 2 ? answers : answers.reverse();
      const { status } = ok(await buyer.get(`/api/checkouts/${id}`));
      if (cancelled.status === 200) {
        fails(paid, 409, 'checkout_not_payable');
        assert.equal(status, 'cancelled');
        assert.equal(await event.status(seat.seat_id), 'available');
      } else {
        ok(paid, 200);
        failsWithOneOf(cancelled, [409, 'payment_in_progress'], [409, 'checkout_not_cancellable']);
        assert.equal(status, 'completed');
        assert.equal(await event.status(seat.seat_id), 'sold');
      }
      return status;
    }));
    const occupancy = await event.occupancy();
    assert.equal(occupancy.sold, outcomes.filter((status) => status === 'completed').length);
    assert.equal(occupancy.held, 0);
  });

  it('pay and release of the same hold: a ticket or a free seat', async () => {
    const event = await row(30);
    await Promise.all(event.seats.map(async (seat) => {
      const buyer = organization.buyer();
      const hold = await event.hold(buyer, seat);
      const { checkout_id: id } = ok(await event.checkout(buyer), 201);
      const [paid, released, byAdmin] = await Promise.all([
        complete(buyer, id),
        buyer.del(`/api/holds/${hold.hold_id}`),
        organization.admin.post('/api/admin/seats/release', { hold_ids: [hold.hold_id] }),
      ]);
      const state = await event.status(seat.seat_id);
      if (paid.status === 200) {
        assert.equal(state, 'sold');
        assert.equal(ok(byAdmin).seats_released, 0);
        assert.notEqual(released.status, 500);
      } else {
        failsWithOneOf(paid, [409, 'checkout_not_payable'], [409, 'holds_expired']);
        assert.equal(state, 'available');
      }
    }));
  });

  it('pay at the moment the hold runs out: a ticket or a free seat, and no charge without a ticket', async () => {
    const event = await row(40, { hold_ttl_seconds: 4, hold_max_seconds: 4, release_grace_seconds: 0 });
    const bought = await Promise.all(event.seats.map(async (seat, index) => {
      const buyer = organization.buyer();
      const hold = await event.hold(buyer, seat);
      const started = await event.checkout(buyer);
      if (started.status !== 201) { // it ran out even earlier, on a busy machine
        failsWithOneOf(started, [409, 'holds_expired'], [400, 'no_active_holds']);
        return false;
      }
      const { checkout_id: id } = ok(started, 201);
      await pause(Math.max(0, hold.held_until_unix * 1000 - Date.now() - 60 + index * 3));
      const paid = await complete(buyer, id);
      if (paid.status !== 200) failsWithOneOf(paid, [409, 'holds_expired'], [409, 'checkout_not_payable']);
      return paid.status === 200;
    }));
    const count = bought.filter(Boolean).length;
    const occupancy = await waitFor('the rest to be free', async () => {
      const now = await event.occupancy();
      return now.held === 0 ? now : undefined;
    });
    assert.deepEqual([occupancy.sold, occupancy.available], [count, 40 - count]);
  });

  it('extend at the moment the hold runs out: extended and held, or refused and free', async () => {
    const event = await row(40, { hold_ttl_seconds: 2, hold_max_seconds: 600, checkout_extension_seconds: 300, release_grace_seconds: 0 });
    const extended = await Promise.all(event.seats.map(async (seat, index) => {
      const buyer = organization.buyer();
      const hold = await event.hold(buyer, seat);
      await pause(Math.max(0, hold.held_until_unix * 1000 - Date.now() - 60 + index * 3));
      const answer = await buyer.post(`/api/holds/${hold.hold_id}/extend`);
      if (answer.status !== 200) failsWithOneOf(answer, [409, 'holds_expired'], [404, 'hold_not_found']);
      return answer.status === 200 ? seat.seat_id : undefined;
    }));
    const kept = extended.filter(Boolean).sort();
    await waitFor('the others to be free', async () => (await event.occupancy()).held === kept.length);
    assert.deepEqual((await event.list()).filter((seat) => seat.status === 'held').map((seat) => seat.seat_id).sort(), kept);
  });

  it('one hold named in two checkouts at once, one of them being paid: paid once', async () => {
    const event = await row(20);
    await Promise.all(event.seats.map(async (seat) => {
      const buyer = organization.buyer();
      const hold = await event.hold(buyer, seat);
      const first = ok(await event.checkout(buyer), 201);
      const extra = await event.occupancy();
      assert.ok(extra.held > 0);
      const [paid, second] = await Promise.all([complete(buyer, first.checkout_id), event.checkout(buyer, { hold_ids: [hold.hold_id] })]);
      assert.ok([200, 409].includes(paid.status), paid.text);
      assert.ok(second.status < 500, second.text);
      await waitFor('the payment to settle', async () => ok(await buyer.get(`/api/checkouts/${first.checkout_id}`)).status !== 'processing');
      const state = ok(await buyer.get(`/api/checkouts/${first.checkout_id}`)).status;
      assert.equal(await event.status(seat.seat_id), state === 'completed' ? 'sold' : 'held');
    }));
  });

  it('an event cancelled while a hundred reserve: afterwards nothing is held', async () => {
    const event = await row(100);
    const reserves = Promise.all(event.seats.map((seat) => event.reserve(organization.buyer(), seat)));
    const cancelled = event.patch({ status: 'cancelled' });
    const answers = await reserves;
    ok(await cancelled);
    for (const answer of answers) if (answer.status !== 201) fails(answer, 400, 'event_not_available');
    const listed = ok(await organization.admin.get(`${event.adminPath}/holds`));
    assert.deepEqual(listed, []);
    const released = (await event.audit({ action: 'seat_released' })).length;
    assert.equal(released, answers.filter((answer) => answer.status === 201).length);
  });

  it('a layout replaced while people reserve: either it is in use or their seats are unknown', async () => {
    for (let round = 0; round < 5; round++) {
      const event = await row(20);
      const [replaced, ...answers] = await Promise.all([
        organization.admin.put(`${event.adminPath}/layout`, layoutOf(block('B', 1, [7]))),
        ...event.seats.map((seat) => event.reserve(organization.buyer(), seat)),
      ]);
      const granted = answers.filter((answer) => answer.status === 201).length;
      if (replaced.status === 200) {
        assert.equal(granted, 0, 'no hold on a seat that is gone');
        for (const answer of answers) fails(answer, 404, 'seat_not_found');
        assert.equal((await event.list()).length, 7);
      } else {
        fails(replaced, 409, 'layout_in_use');
        assert.equal((await event.occupancy()).held, granted);
      }
    }
  });

  it('block and reserve: the seat ends blocked, whoever came first', async () => {
    const event = await row(30);
    await Promise.all(event.seats.map(async (seat) => {
      const buyer = organization.buyer();
      const [reserved, blocked] = await Promise.all([
        event.reserve(buyer, seat),
        organization.admin.post(`${event.adminPath}/seats/block`, { seat_ids: [seat.seat_id] }),
      ]);
      ok(blocked);
      if (reserved.status !== 201) fails(reserved, 409, 'seat_not_available');
      assert.deepEqual(ok(await buyer.get('/api/holds')), []);
    }));
    assert.equal((await event.occupancy()).blocked, 30);
  });

  it('release and reserve by another: every 201 is one holder', async () => {
    const event = await row(5);
    const holders = await Promise.all(event.seats.map(async (seat) => {
      let holder = organization.buyer();
      let hold = await event.hold(holder, seat);
      for (let step = 0; step < 10; step++) {
        const rivals = Array.from({ length: 4 }, () => organization.buyer());
        const [released, ...answers] = await Promise.all([holder.del(`/api/holds/${hold.hold_id}`), ...rivals.map((rival) => event.reserve(rival, seat))]);
        ok(released);
        const winners = rivals.filter((_, index) => answers[index].status === 201);
        assert.ok(winners.length <= 1, 'at most one winner');
        for (const answer of answers) if (answer.status !== 201) fails(answer, 409, 'seat_held_by_another_user');
        if (winners.length === 1) {
          [holder] = winners;
          hold = answers.find((answer) => answer.status === 201).body.data;
        } else {
          hold = await event.hold(holder, seat);
        }
      }
      return holder;
    }));
    for (const holder of holders) assert.equal(ok(await holder.get('/api/holds')).length, 1);
  });

  it('the same user on many devices at once gets one hold per seat', async () => {
    const event = await row(6);
    const buyer = organization.buyer();
    await Promise.all(event.seats.map(async (seat) => {
      const answers = await Promise.all(Array.from({ length: 12 }, () => event.reserve(buyer, seat)));
      assert.equal(answers.filter((answer) => answer.status === 201).length, 1, 'one is new');
      assert.equal(answers.filter((answer) => answer.status === 200).length, 11, 'the others are the same');
      assert.equal(new Set(answers.map((answer) => answer.body.data.hold_id)).size, 1);
    }));
  });

  it('checkout starts at the same moment make one checkout', async () => {
    const event = await row(3);
    const buyer = organization.buyer();
    ok(await event.holdMany(buyer, event.seats), 201);
    const answers = await Promise.all(Array.from({ length: 10 }, () => event.checkout(buyer)));
    assert.equal(answers.filter((answer) => answer.status === 201).length, 1);
    assert.equal(new Set(answers.map((answer) => answer.body.data.checkout_id)).size, 1);
    assert.equal((await event.audit({ action: 'hold_extended' })).length <= 3, true, 'extended once each');
  });

  it('the same user id in two organizations is two people', async () => {
    const elsewhere = await world.organization();
    const [here, there] = [await row(3), await elsewhere.event()];
    const user = uuid();
    const [mine, theirs] = [organization.buyer(user), elsewhere.buyer(user)];
    const news = await openStream(server, '/api/stream', { token: theirs.bearer });
    const hold = await here.hold(mine, here.seats[0]);
    assert.deepEqual(ok(await theirs.get('/api/holds')), []);
    fails(await theirs.get(`/api/holds/${hold.hold_id}`), 404, 'hold_not_found');
    fails(await theirs.post(`/api/holds/${hold.hold_id}/extend`), 404, 'hold_not_found');
    fails(await theirs.del(`/api/holds/${hold.hold_id}`), 404, 'hold_not_found');
    ok(await mine.del(`/api/holds/${hold.hold_id}`));
    const other = await there.hold(theirs, there.seats[0]);
    ok(await theirs.del(`/api/holds/${other.hold_id}`));
    await news.waitEvent('hold_released', (data) => data.hold_id === other.hold_id);
    assert.ok(!news.text.includes(hold.hold_id), 'news of the other person');
    news.close();
  });

  it('verify beside the running server finds nothing, in the middle of load', async () => {
    const event = await organization.event({ layout: layoutOf(block('A', 1, Array(10).fill(100))) });
    let finished = false;
    const load = inParallel(Array.from({ length: 1000 }, (_, index) => index), 24, async (index) => {
      if (finished) return;
      const buyer = organization.buyer();
      const response = await event.reserve(buyer, event.seats[index]);
      if (response.status === 201 && index % 3 === 0) ok(await buyer.del(`/api/holds/${response.body.data.hold_id}`));
      if (response.status === 201 && index % 7 === 0) {
        const checkout = await event.checkout(buyer);
        if (checkout.status === 201) ok(await complete(buyer, checkout.body.data.checkout_id));
      }
    });
    const proof = await server.verify();
    finished = true;
    await load;
    assert.equal(proof.status, 0, proof.stdout + proof.stderr);
  });
});
