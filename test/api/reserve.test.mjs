// SPDX-License-Identifier: Apache-2.0
// Taking seats: one, several, for somebody else; every reason to refuse, and the order in which the reasons are looked at.

import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';

import { fails, failsWithOneOf, ok } from '../lib/client.mjs';
import { start } from '../lib/server.mjs';
import { isHold, saysNothingOf, TIME, unix } from '../lib/shape.mjs';
import { now, uuid } from '../lib/token.mjs';
import { pause, waitFor, waitUntilUnix } from '../lib/wait.mjs';
import { block, buy, layoutOf, World } from '../lib/world.mjs';

const isoAt = (offsetSeconds) => new Date(Date.now() + offsetSeconds * 1000).toISOString().replace(/\.\d+Z$/, 'Z');

describe('reserve', { concurrency: 12 }, () => {
  let server;
  let world;
  let organization;

  before(async () => {
    server = await start();
    world = new World(server);
    organization = await world.organization();
  });
  after(() => server.stop());

  it('answers 201 with exactly the documented fields and holds the seat', async () => {
    const event = await organization.event({ policy: { hold_ttl_seconds: 300 }, layout: layoutOf(block('A', 1, [['41', '42']], { name: 'Section A' })) });
    const buyer = organization.buyer();
    const before1 = now();
    const response = await event.reserve(buyer, event.seats[1], { source: 'web' });
    const hold = ok(response, 201);
    isHold(hold, { seat: event.seats[1], event: event.id, ttl: 300 });
    assert.equal(hold.block_name, 'Section A');
    assert.equal(hold.seat_number, '42');
    assert.ok(hold.held_until_unix >= before1 + 299 && hold.held_until_unix <= now() + 301);
    assert.match(hold.message, /5 minutes/);
    assert.equal(await event.status(event.seats[1].seat_id), 'held');
    saysNothingOf(response.text, buyer.user, organization.id);
  });

  it('needs no body at all, and takes every source', async () => {
    const event = await organization.event();
    const buyer = organization.buyer();
    isHold(ok(await buyer.send('POST', `${event.path}/seats/${event.seats[0].seat_id}/reserve`), 201));
    for (const [index, source] of ['web', 'scanner', 'offline_sync'].entries()) {
      isHold(ok(await event.reserve(buyer, event.seats[index + 1], { source }), 201));
    }
  });

  it('by the same user returns the existing hold with 200 and changes nothing', async () => {
    const event = await organization.event();
    const buyer = organization.buyer();
    const first = await event.hold(buyer, event.seats[0]);
    const again = ok(await event.reserve(buyer, event.seats[0]), 200);
    isHold(again);
    assert.equal(again.hold_id, first.hold_id);
    assert.equal(again.held_until, first.held_until, 'asking again extends nothing');
    assert.equal((await event.occupancy()).held, 1);
  });

  it('of a seat that another holds is refused without saying who holds it', async () => {
    const event = await organization.event();
    const [holder, other] = [organization.buyer(), organization.buyer()];
    const hold = await event.hold(holder, event.seats[0], { cart_token: 'cart-of-the-holder' });
    const response = await event.reserve(other, event.seats[0]);
    const { details } = fails(response, 409, 'seat_held_by_another_user');
    assert.match(details.expires_at, TIME);
    assert.ok(unix(details.expires_at) >= hold.held_until_unix);
    assert.ok(Number.isInteger(details.expires_in_seconds) && details.expires_in_seconds > 0);
    saysNothingOf(response.text, holder.user, hold.hold_id, 'cart-of-the-holder');
  });

  it('of a sold seat and of a blocked seat names the seat\'s state', async () => {
    const event = await organization.event();
    await buy(event, organization.buyer(), [event.seats[0]]);
    ok(await organization.admin.post(`${event.adminPath}/seats/block`, { seat_ids: [event.seats[1].seat_id] }));
    const other = organization.buyer();
    assert.equal(fails(await event.reserve(other, event.seats[0]), 409, 'seat_not_available').details.current_status, 'sold');
    assert.equal(fails(await event.reserve(other, event.seats[1]), 409, 'seat_not_available').details.current_status, 'blocked');
  });

  it('of a sold seat is refused to its own buyer too', async () => {
    const event = await organization.event();
    const buyer = organization.buyer();
    await buy(event, buyer, [event.seats[0]]);
    fails(await event.reserve(buyer, event.seats[0]), 409, 'seat_not_available');
  });

  it('of an unknown seat, a seat of another event and an unknown event are 404', async () => {
    const [event, elsewhere] = [await organization.event(), await organization.event()];
    const buyer = organization.buyer();
    fails(await event.reserve(buyer, uuid()), 404, 'seat_not_found');
    fails(await event.reserve(buyer, elsewhere.seats[0]), 404, 'seat_not_found');
    fails(await buyer.post(`/api/events/${uuid()}/seats/${event.seats[0].seat_id}/reserve`), 404, 'event_not_found');
    assert.equal((await elsewhere.occupancy()).held, 0);
  });

  it('refuses a bad shape with 400 and holds nothing', async () => {
    const event = await organization.event();
    const buyer = organization.buyer();
    const seat = event.seats[0];
    for (const body of [{ source: 'phone' }, { source: 5 }, { source: [] }, { cart_token: '' }, { cart_token: 'x'.repeat(256) }, { cart_token: 7 },
      { cart_token: {} }, [], '"text"', '5', 'null', '{', '{"source":"web",}', '{"source":"web"} trailing']) {
      fails(await event.reserve(buyer, seat, body), 400, 'invalid_request');
    }
    fails(await buyer.post(`/api/events/nope/seats/${seat.seat_id}/reserve`), 400, 'invalid_request');
    fails(await buyer.post(`${event.path}/seats/nope/reserve`), 400, 'invalid_request');
    fails(await buyer.post(`${event.path}/seats/${seat.seat_id.slice(1)}/reserve`), 400, 'invalid_request');
    assert.equal((await event.occupancy()).held, 0);
    ok(await event.reserve(buyer, seat, { cart_token: 'x'.repeat(255) }), 201);
  });

  it('counts a cart token in characters, not bytes', async () => {
    const event = await organization.event();
    ok(await event.reserve(organization.buyer(), event.seats[0], { cart_token: 'é'.repeat(255) }), 201);
    fails(await event.reserve(organization.buyer(), event.seats[1], { cart_token: 'é'.repeat(256) }), 400, 'invalid_request');
  });

  it('is refused for a draft, an archived and a cancelled event', async () => {
    const buyer = organization.buyer();
    const draft = await organization.event({ status: 'draft' });
    await draft.patch({ status: 'published' });
    await draft.load();
    const archived = await organization.event({ status: 'live' });
    ok(await archived.patch({ status: 'archived' }));
    const cancelled = await organization.event();
    ok(await cancelled.patch({ status: 'cancelled' }));
    const stillDraft = await organization.event({ status: 'draft' });
    fails(await stillDraft.reserve(buyer, draft.seats[0]), 400, 'event_not_available');
    fails(await archived.reserve(buyer, archived.seats[0]), 400, 'event_not_available');
    fails(await cancelled.reserve(buyer, cancelled.seats[0]), 400, 'event_not_available');
    ok(await draft.reserve(buyer, draft.seats[0]), 201);
  });

  it('is refused before and after the sale window, and allowed inside it', async () => {
    const buyer = organization.buyer();
    const early = await organization.event({ sale_start: isoAt(3600), sale_end: isoAt(7200) });
    const late = await organization.event({ sale_start: isoAt(-7200), sale_end: isoAt(-3600) });
    fails(await early.reserve(buyer, early.seats[0]), 400, 'event_sales_closed');
    fails(await late.reserve(buyer, late.seats[0]), 400, 'event_sales_closed');
    fails(await late.holdMany(buyer, late.seats.slice(0, 2)), 400, 'event_sales_closed');
    fails(await late.best(buyer, { quantity: 2 }), 400, 'event_sales_closed');
    ok(await late.patch({ sale_end: isoAt(3600) }));
    ok(await late.reserve(buyer, late.seats[0]), 201);
  });

  it('sale window opens by itself when its time comes', async () => {
    const opening = now() + 6;
    const event = await organization.event({ sale_start: new Date(opening * 1000).toISOString().replace('.000Z', 'Z') });
    const buyer = organization.buyer();
    fails(await event.reserve(buyer, event.seats[0]), 400, 'event_sales_closed');
    await waitUntilUnix(opening + 1);
    ok(await event.reserve(buyer, event.seats[0]), 201);
  });

  it('stops at max_seats_per_user, counts active holds only, and is per user and event', async () => {
    const policy = { max_seats_per_user: 2 };
    const [event, second] = [await organization.event({ policy }), await organization.event({ policy })];
    const [buyer, other] = [organization.buyer(), organization.buyer()];
    const first = await event.hold(buyer, event.seats[0]);
    await event.hold(buyer, event.seats[1]);
    fails(await event.reserve(buyer, event.seats[2]), 409, 'hold_limit_reached');
    ok(await event.reserve(buyer, event.seats[0]), 200);
    ok(await event.reserve(other, event.seats[2]), 201);
    ok(await second.reserve(buyer, second.seats[0]), 201);
    ok(await buyer.del(`/api/holds/${first.hold_id}`));
    ok(await event.reserve(buyer, event.seats[3]), 201);
  });

  it('several seats beyond max_seats_per_user hold nothing at all', async () => {
    const event = await organization.event({ policy: { max_seats_per_user: 3 } });
    const buyer = organization.buyer();
    await event.hold(buyer, event.seats[0]);
    fails(await event.holdMany(buyer, event.seats.slice(1, 4)), 409, 'hold_limit_reached');
    fails(await event.best(buyer, { quantity: 3 }), 409, 'hold_limit_reached');
    assert.equal((await event.occupancy()).held, 1);
    ok(await event.holdMany(buyer, event.seats.slice(0, 3)), 201);
    assert.equal((await event.occupancy()).held, 3);
  });

  it('rate limit answers 429 with Retry-After, counts only new holds, and recovers after the window', async () => {
    const event = await organization.event({ policy: { rate_limit_holds: 2, rate_limit_window_seconds: 6 } });
    const [buyer, other] = [organization.buyer(), organization.buyer()];
    await event.hold(other, event.seats[5]);
    fails(await event.reserve(buyer, event.seats[5]), 409, 'seat_held_by_another_user');
    const first = await event.hold(buyer, event.seats[0]);
    ok(await event.reserve(buyer, event.seats[0]), 200);
    ok(await event.reserve(buyer, event.seats[0]), 200);
    ok(await buyer.del(`/api/holds/${first.hold_id}`));
    await event.hold(buyer, event.seats[1]);
    const limited = await event.reserve(buyer, event.seats[2]);
    fails(limited, 429, 'rate_limited');
    const wait = Number(limited.headers['retry-after']);
    assert.ok(wait >= 1 && wait <= 7, `Retry-After ${wait}`);
    assert.equal(await event.status(event.seats[2].seat_id), 'available');
    ok(await event.reserve(other, event.seats[2]), 201);
    await pause(wait * 1000 + 100);
    ok(await event.reserve(buyer, event.seats[3]), 201);
  });

  it('rate limit counts each seat of a request for several', async () => {
    const event = await organization.event({ policy: { rate_limit_holds: 3, rate_limit_window_seconds: 300 } });
    const buyer = organization.buyer();
    ok(await event.holdMany(buyer, event.seats.slice(0, 2)), 201);
    fails(await event.holdMany(buyer, event.seats.slice(2, 4)), 429, 'rate_limited');
    assert.equal((await event.occupancy()).held, 2, 'a limited request holds nothing');
    ok(await event.reserve(buyer, event.seats[2]), 201);
    fails(await event.reserve(buyer, event.seats[3]), 429, 'rate_limited');
  });

  it('an agent\'s holds count for the buyer they act for', async () => {
    const event = await organization.event({ policy: { rate_limit_holds: 2, max_seats_per_user: 2 } });
    const [agent, first, second] = [organization.agent(), organization.buyer(), organization.buyer()];
    for (const buyer of [first, second]) ok(await buyer.get('/api/events'));
    ok(await event.reserve(agent, event.seats[0], { user_id: first.user }), 201);
    ok(await event.reserve(agent, event.seats[1], { user_id: first.user }), 201);
    fails(await event.reserve(first, event.seats[2]), 409, 'hold_limit_reached');
    ok(await event.reserve(agent, event.seats[3], { user_id: second.user }), 201);
    ok(await event.reserve(agent, event.seats[4]), 201);
  });

  it('never exceeds a block\'s capacity, with holds and sold seats counted, and frees it by release', async () => {
    const event = await organization.event({ layout: layoutOf(block('A', 1, [5], { capacity: 2 }), block('B', 1, [5])) });
    const buyer = organization.buyer();
    await buy(event, organization.buyer(), [event.seats[0]]);
    const hold = await event.hold(buyer, event.seats[1]);
    fails(await event.reserve(buyer, event.seats[2]), 409, 'block_at_capacity');
    fails(await event.holdMany(buyer, [event.seats[2], event.seats[5]]), 409, 'block_at_capacity');
    assert.equal(await event.status(event.seats[5].seat_id), 'available');
    ok(await event.reserve(buyer, event.seats[6]), 201);
    ok(await buyer.del(`/api/holds/${hold.hold_id}`));
    ok(await event.reserve(buyer, event.seats[2]), 201);
    fails(await event.reserve(buyer, event.seats[3]), 409, 'block_at_capacity');
  });

  it('capacity holds when many ask at the same time', async () => {
    const event = await organization.event({ layout: layoutOf(block('A', 1, [40], { capacity: 7 })) });
    const answers = await Promise.all(event.seats.map((seat) => event.reserve(organization.buyer(), seat)));
    assert.equal(answers.filter((answer) => answer.status === 201).length, 7);
    for (const answer of answers) if (answer.status !== 201) fails(answer, 409, 'block_at_capacity');
    assert.equal((await event.occupancy()).held, 7);
  });

  it('max_seats_per_user holds when one user asks many times at once', async () => {
    const event = await organization.event({ layout: layoutOf(block('A', 1, [40])), policy: { max_seats_per_user: 5 } });
    const buyer = organization.buyer();
    const answers = await Promise.all(event.seats.map((seat) => event.reserve(buyer, seat)));
    assert.equal(answers.filter((answer) => answer.status === 201).length, 5);
    for (const answer of answers) if (answer.status !== 201) fails(answer, 409, 'hold_limit_reached');
  });

  it('between held_until and release the owner gets a new hold and others are told when to come back', async () => {
    const event = await organization.event({ policy: { hold_ttl_seconds: 1, release_grace_seconds: 20 } });
    const [owner, other] = [organization.buyer(), organization.buyer()];
    const hold = await event.hold(owner, event.seats[0]);
    const second = await event.hold(owner, event.seats[1]);
    await waitUntilUnix(hold.held_until_unix + 1.2);
    assert.equal(await event.status(event.seats[0].seat_id), 'held');
    const { details } = fails(await event.reserve(other, event.seats[0]), 409, 'seat_held_by_another_user');
    assert.ok(Math.abs(unix(details.expires_at) - (hold.held_until_unix + 20)) <= 1, `${details.expires_at}: held_until + grace`);
    fails(await owner.post(`/api/holds/${hold.hold_id}/extend`), 409, 'holds_expired');
    fails(await owner.post(`/api/holds/${second.hold_id}/extend`), 409, 'holds_expired');
    const renewed = ok(await event.reserve(owner, event.seats[0]), 201);
    isHold(renewed, { seat: event.seats[0], event: event.id, ttl: 1 });
    assert.notEqual(renewed.hold_id, hold.hold_id);
    const ended = (await event.audit({ action: 'seat_hold_expired' })).filter((row) => row.entity_id === hold.hold_id);
    assert.equal(ended.length, 1, 'the old hold ended as expired');
    assert.equal((await event.occupancy()).held, 2);
  });

  it('a failed reserve is audited with who tried and why', async () => {
    const event = await organization.event();
    const other = organization.buyer();
    await event.hold(organization.buyer(), event.seats[0]);
    fails(await event.reserve(other, event.seats[0]), 409, 'seat_held_by_another_user');
    const row = await waitFor('the audit row of a failed reserve', async () =>
      (await event.audit({ action: 'seat_reserve_failed' })).find((candidate) => candidate.seat_id === event.seats[0].seat_id));
    assert.equal(row.actor_id, other.user);
    assert.match(JSON.stringify(row), /seat_held_by_another_user/);
  });

  describe('of several named seats', { concurrency: 12 }, () => {
    it('takes all and answers with all holds', async () => {
      const event = await organization.event();
      const buyer = organization.buyer();
      const seats = [event.seats[0], event.seats[12], event.seats[5]];
      const data = ok(await event.holdMany(buyer, seats), 201);
      assert.equal(data.holds.length, 3);
      for (const hold of data.holds) isHold(hold, { event: event.id });
      assert.deepEqual(data.holds.map((hold) => hold.seat_id).sort(), seats.map((seat) => seat.seat_id).sort());
      assert.equal(new Set(data.holds.map((hold) => hold.held_until)).size, 1, 'they end together');
    });

    it('takes none if one is taken, and says of each failed seat why', async () => {
      const event = await organization.event();
      const [buyer, other] = [organization.buyer(), organization.buyer()];
      const theirs = await event.hold(other, event.seats[1]);
      ok(await organization.admin.post(`${event.adminPath}/seats/block`, { seat_ids: [event.seats[3].seat_id] }));
      const response = await event.holdMany(buyer, event.seats.slice(0, 4));
      const { details } = fails(response, 409, 'seat_held_by_another_user');
      assert.deepEqual(details.seats.map((entry) => [entry.seat_id, entry.code]), [
        [event.seats[1].seat_id, 'seat_held_by_another_user'],
        [event.seats[3].seat_id, 'seat_not_available'],
      ]);
      assert.match(details.seats[0].expires_at, TIME);
      assert.equal(details.seats[1].current_status, 'blocked');
      saysNothingOf(response.text, other.user, theirs.hold_id);
      assert.equal((await event.occupancy()).held, 1);
      const reversed = await event.holdMany(buyer, [event.seats[3], event.seats[1]]);
      fails(reversed, 409, 'seat_not_available');
    });

    it('an unknown seat among them is 404 and holds nothing', async () => {
      const event = await organization.event();
      const response = await event.holdMany(organization.buyer(), [event.seats[0], uuid()]);
      fails(response, 404, 'seat_not_found');
      assert.equal((await event.occupancy()).held, 0);
    });

    it('keeps those that are mine already', async () => {
      const event = await organization.event();
      const buyer = organization.buyer();
      const mine = await event.hold(buyer, event.seats[2]);
      const data = ok(await event.holdMany(buyer, event.seats.slice(1, 4)), 201);
      assert.equal(data.holds.length, 3);
      const same = data.holds.find((hold) => hold.seat_id === mine.seat_id);
      assert.equal(same.hold_id, mine.hold_id);
      assert.equal(same.held_until, mine.held_until);
      const again = ok(await event.holdMany(buyer, event.seats.slice(1, 4)), 200);
      assert.deepEqual(again.holds.map((hold) => hold.hold_id).sort(), data.holds.map((hold) => hold.hold_id).sort());
    });

    it('refuses one, more than fifty, duplicates and wrong types', async () => {
      const event = await organization.event({ layout: layoutOf(block('A', 1, [60])) });
      const buyer = organization.buyer();
      const ids = event.seats.map((seat) => seat.seat_id);
      for (const body of [{ seat_ids: [ids[0]] }, { seat_ids: [] }, { seat_ids: ids.slice(0, 51) }, { seat_ids: [ids[0], ids[0]] },
        { seat_ids: [ids[0], 'x'] }, { seat_ids: [ids[0], 5] }, { seat_ids: 'all' }, { seat_ids: null }, {},
        { seat_ids: ids.slice(0, 2), quantity: 2 }]) {
        fails(await buyer.post(`${event.path}/holds`, body), 400, 'invalid_request');
      }
      assert.equal((await event.occupancy()).held, 0);
      assert.equal(ok(await buyer.post(`${event.path}/holds`, { seat_ids: ids.slice(0, 50) }), 201).holds.length, 50);
    });

    it('two overlapping requests at the same moment: one gets all, the other none', async () => {
      const event = await organization.event({ layout: layoutOf(block('A', 1, [30])) });
      for (let round = 0; round < 5; round++) {
        const from = round * 5;
        const [first, second] = await Promise.all([
          event.holdMany(organization.buyer(), event.seats.slice(from, from + 3)),
          event.holdMany(organization.buyer(), event.seats.slice(from + 2, from + 5)),
        ]);
        assert.deepEqual([first.status, second.status].sort(), [201, 409]);
        const states = (await event.list()).slice(from, from + 5).map((seat) => seat.status);
        assert.equal(states.filter((state) => state === 'held').length, 3);
      }
    });
  });

  describe('by an agent', { concurrency: 12 }, () => {
    it('holds for the buyer, who sees and owns it', async () => {
      const event = await organization.event();
      const [agent, buyer] = [organization.agent(), organization.buyer()];
      ok(await buyer.get('/api/events'));
      const hold = ok(await event.reserve(agent, event.seats[0], { user_id: buyer.user }), 201);
      assert.deepEqual(ok(await buyer.get('/api/holds')).map((entry) => entry.hold_id), [hold.hold_id]);
      assert.equal(ok(await event.reserve(buyer, event.seats[0]), 200).hold_id, hold.hold_id);
      ok(await buyer.del(`/api/holds/${hold.hold_id}`));
    });

    it('and an admin may act too, a buyer may not', async () => {
      const event = await organization.event();
      const buyer = organization.buyer();
      const other = organization.buyer();
      ok(await buyer.get('/api/events'));
      ok(await event.reserve(organization.admin, event.seats[0], { user_id: buyer.user }), 201);
      fails(await event.reserve(other, event.seats[1], { user_id: buyer.user }), 403, 'forbidden');
      fails(await event.holdMany(other, event.seats.slice(1, 3), { user_id: buyer.user }), 403, 'forbidden');
      fails(await event.checkout(other, { user_id: buyer.user }), 403, 'forbidden');
      assert.equal((await event.occupancy()).held, 1);
    });

    it('reads, extends, releases, checks out and cancels for the buyer', async () => {
      const event = await organization.event({ policy: { hold_ttl_seconds: 60, hold_max_seconds: 600, checkout_extension_seconds: 60 } });
      const [agent, buyer] = [organization.agent(), organization.buyer()];
      ok(await buyer.get('/api/events'));
      const data = ok(await event.holdMany(agent, event.seats.slice(0, 3), { user_id: buyer.user }), 201);
      const [first, second] = data.holds;
      assert.equal(ok(await agent.get(`/api/holds/${first.hold_id}`)).hold_id, first.hold_id);
      assert.equal(ok(await agent.get(`/api/holds?user_id=${buyer.user}`)).length, 3);
      assert.deepEqual(ok(await agent.get('/api/holds')), [], 'the agent holds nothing');
      fails(await organization.buyer().get(`/api/holds?user_id=${buyer.user}`), 403, 'forbidden');
      ok(await agent.post(`/api/holds/${first.hold_id}/extend`));
      ok(await agent.del(`/api/holds/${second.hold_id}`));
      const checkout = ok(await event.checkout(agent, { user_id: buyer.user }), 201);
      assert.equal(checkout.seats.length, 2);
      assert.equal(ok(await agent.get(`/api/checkouts/${checkout.checkout_id}`)).checkout_id, checkout.checkout_id);
      assert.equal(ok(await buyer.get(`/api/checkouts/${checkout.checkout_id}`)).checkout_id, checkout.checkout_id);
      ok(await agent.post(`/api/checkouts/${checkout.checkout_id}/cancel`, {}));
      assert.equal((await event.occupancy()).held, 0);
    });

    it('cannot act for a bad id', async () => {
      const event = await organization.event();
      fails(await event.reserve(organization.agent(), event.seats[0], { user_id: 'x' }), 400, 'invalid_request');
      fails(await event.reserve(organization.agent(), event.seats[0], { user_id: 5 }), 400, 'invalid_request');
      assert.equal((await event.occupancy()).held, 0);
    });
  });

  describe('checks in the stated order:', { concurrency: 12 }, () => {
    it('shape before idempotency', async () => {
      const event = await organization.event();
      const buyer = organization.buyer();
      const key = uuid();
      ok(await event.reserve(buyer, event.seats[0], { source: 'web' }, { key }), 201);
      fails(await event.reserve(buyer, event.seats[0], { source: 'nowhere' }, { key }), 400, 'invalid_request');
      fails(await event.reserve(buyer, event.seats[0], { source: 'scanner' }, { key }), 409, 'idempotency_key_reused');
    });

    it('idempotency before event', async () => {
      const event = await organization.event();
      const buyer = organization.buyer();
      const key = uuid();
      const hold = ok(await event.reserve(buyer, event.seats[0], {}, { key }), 201);
      ok(await event.patch({ status: 'cancelled' }));
      assert.equal(ok(await event.reserve(buyer, event.seats[0], {}, { key }), 201).hold_id, hold.hold_id);
      fails(await event.reserve(buyer, event.seats[0], {}), 400, 'event_not_available');
    });

    it('shape before event', async () => {
      fails(await organization.buyer().post(`/api/events/${uuid()}/seats/${uuid()}/reserve`, { source: 5 }), 400, 'invalid_request');
    });

    it('event before seat', async () => {
      fails(await organization.buyer().post(`/api/events/${uuid()}/seats/${uuid()}/reserve`), 404, 'event_not_found');
      const event = await organization.event();
      ok(await event.patch({ status: 'cancelled' }));
      fails(await event.reserve(organization.buyer(), uuid()), 400, 'event_not_available');
    });

    it('mine already before the sale window', async () => {
      const event = await organization.event();
      const buyer = organization.buyer();
      const hold = await event.hold(buyer, event.seats[0]);
      ok(await event.patch({ sale_end: isoAt(-60) }));
      assert.equal(ok(await event.reserve(buyer, event.seats[0]), 200).hold_id, hold.hold_id);
      fails(await event.reserve(buyer, event.seats[1]), 400, 'event_sales_closed');
    });

    it('sale window before seat', async () => {
      const event = await organization.event();
      await event.hold(organization.buyer(), event.seats[0]);
      ok(await event.patch({ sale_end: isoAt(-60) }));
      fails(await event.reserve(organization.buyer(), event.seats[0]), 400, 'event_sales_closed');
    });

    it('seat before limits, and mine already before limits', async () => {
      const event = await organization.event({ policy: { max_seats_per_user: 1, rate_limit_holds: 1 } });
      const [buyer, other] = [organization.buyer(), organization.buyer()];
      await event.hold(other, event.seats[1]);
      await event.hold(buyer, event.seats[0]);
      fails(await event.reserve(buyer, event.seats[1]), 409, 'seat_held_by_another_user');
      ok(await event.reserve(buyer, event.seats[0]), 200);
      assert.ok([409, 429].includes((await event.reserve(buyer, event.seats[2])).status));
    });
  });
});

describe('holds of mine', { concurrency: 12 }, () => {
  let server;
  let world;
  let organization;

  before(async () => {
    server = await start();
    world = new World(server);
    organization = await world.organization();
  });
  after(() => server.stop());

  it('are listed with every field of a hold, only active ones, only mine, over all events', async () => {
    const [first, second] = [await organization.event(), await organization.event()];
    const [buyer, other] = [organization.buyer(), organization.buyer()];
    const holds = [await first.hold(buyer, first.seats[0]), await first.hold(buyer, first.seats[1]), await second.hold(buyer, second.seats[0])];
    await first.hold(other, first.seats[2]);
    ok(await buyer.del(`/api/holds/${holds[1].hold_id}`));
    const list = ok(await buyer.get('/api/holds'));
    assert.deepEqual(list.map((hold) => hold.hold_id).sort(), [holds[0].hold_id, holds[2].hold_id].sort());
    for (const hold of list) {
      for (const key of ['hold_id', 'seat_id', 'event_id', 'row', 'seat_number', 'status', 'held_until', 'held_until_unix', 'expires_in_seconds']) {
        assert.ok(key in hold, `${key} in a listed hold`);
      }
    }
    const one = ok(await buyer.get(`/api/holds/${holds[0].hold_id}`));
    assert.equal(one.hold_id, holds[0].hold_id);
    assert.equal(one.held_until, holds[0].held_until);
    assert.deepEqual(ok(await organization.buyer().get('/api/holds')), []);
  });

  it('unknown holds are 404, bad ids 400, for every call', async () => {
    const buyer = organization.buyer();
    fails(await buyer.get(`/api/holds/${uuid()}`), 404, 'hold_not_found');
    fails(await buyer.post(`/api/holds/${uuid()}/extend`), 404, 'hold_not_found');
    fails(await buyer.del(`/api/holds/${uuid()}`), 404, 'hold_not_found');
    fails(await buyer.get('/api/holds/x'), 400, 'invalid_request');
    fails(await buyer.post('/api/holds/x/extend'), 400, 'invalid_request');
    fails(await buyer.del('/api/holds/x'), 400, 'invalid_request');
  });

  it('another buyer can neither see, extend nor release them', async () => {
    const event = await organization.event();
    const [buyer, other] = [organization.buyer(), organization.buyer()];
    const hold = await event.hold(buyer, event.seats[0]);
    fails(await other.post(`/api/holds/${hold.hold_id}/extend`), 403, 'not_hold_owner');
    for (const response of [await other.get(`/api/holds/${hold.hold_id}`), await other.del(`/api/holds/${hold.hold_id}`)]) {
      failsWithOneOf(response, [403, 'not_hold_owner'], [404, 'hold_not_found']);
      saysNothingOf(response.text, buyer.user, hold.seat_id);
    }
    assert.equal(ok(await buyer.get(`/api/holds/${hold.hold_id}`)).held_until, hold.held_until);
  });

  it('releasing one keeps the others, and again is 200', async () => {
    const event = await organization.event();
    const buyer = organization.buyer();
    const holds = ok(await event.holdMany(buyer, event.seats.slice(0, 3)), 201).holds;
    ok(await buyer.del(`/api/holds/${holds[1].hold_id}`));
    assert.equal(await event.status(holds[1].seat_id), 'available');
    assert.equal((await event.occupancy()).held, 2);
    ok(await buyer.del(`/api/holds/${holds[1].hold_id}`));
    assert.equal((await event.occupancy()).held, 2);
    const [row] = (await event.audit({ action: 'seat_released' })).filter((candidate) => candidate.entity_id === holds[1].hold_id);
    assert.equal(row.reason, 'user_cancelled');
  });

  it('a late second release does not free the seat from its next holder', async () => {
    const event = await organization.event();
    const [buyer, next] = [organization.buyer(), organization.buyer()];
    const hold = await event.hold(buyer, event.seats[0]);
    ok(await buyer.del(`/api/holds/${hold.hold_id}`));
    const theirs = await event.hold(next, event.seats[0]);
    ok(await buyer.del(`/api/holds/${hold.hold_id}`));
    assert.equal(await event.status(event.seats[0].seat_id), 'held');
    assert.equal(ok(await next.get(`/api/holds/${theirs.hold_id}`)).hold_id, theirs.hold_id);
  });

  it('extension adds its seconds up to the cap, then is refused, and never shortens', async () => {
    const event = await organization.event({ policy: { hold_ttl_seconds: 20, checkout_extension_seconds: 30, hold_max_seconds: 65 } });
    const buyer = organization.buyer();
    const hold = await event.hold(buyer, event.seats[0]);
    const first = ok(await buyer.post(`/api/holds/${hold.hold_id}/extend`));
    assert.equal(first.hold_id, hold.hold_id);
    assert.equal(first.held_until_unix, hold.held_until_unix + 30);
    const second = ok(await buyer.post(`/api/holds/${hold.hold_id}/extend`));
    assert.ok(Math.abs(second.held_until_unix - (hold.held_until_unix + 45)) <= 1, 'created_at + hold_max_seconds');
    fails(await buyer.post(`/api/holds/${hold.hold_id}/extend`), 409, 'extension_limit_reached');
    assert.equal(ok(await buyer.get(`/api/holds/${hold.hold_id}`)).held_until_unix, second.held_until_unix);
    const rows = (await event.audit({ action: 'hold_extended' })).filter((row) => row.entity_id === hold.hold_id);
    assert.equal(rows.length, 2);
  });

  it('a hold that is at the cap from the start cannot be extended', async () => {
    const event = await organization.event({ policy: { hold_ttl_seconds: 60, hold_max_seconds: 60 } });
    const buyer = organization.buyer();
    const hold = await event.hold(buyer, event.seats[0]);
    fails(await buyer.post(`/api/holds/${hold.hold_id}/extend`), 409, 'extension_limit_reached');
    assert.equal(ok(await buyer.get(`/api/holds/${hold.hold_id}`)).held_until, hold.held_until);
  });

  it('a lowered cap never shortens a hold', async () => {
    const event = await organization.event({ policy: { hold_ttl_seconds: 500, hold_max_seconds: 1000 } });
    const buyer = organization.buyer();
    const hold = await event.hold(buyer, event.seats[0]);
    ok(await event.patch({ policy: { hold_ttl_seconds: 30, hold_max_seconds: 60 } }));
    fails(await buyer.post(`/api/holds/${hold.hold_id}/extend`), 409, 'extension_limit_reached');
    assert.equal(ok(await buyer.get(`/api/holds/${hold.hold_id}`)).held_until, hold.held_until);
    const checkout = ok(await event.checkout(buyer), 201);
    assert.ok(unix(checkout.expires_at) >= hold.held_until_unix, 'starting a checkout does not shorten either');
  });

  it('a released hold cannot be extended', async () => {
    const event = await organization.event();
    const buyer = organization.buyer();
    const hold = await event.hold(buyer, event.seats[0]);
    ok(await buyer.del(`/api/holds/${hold.hold_id}`));
    const response = await buyer.post(`/api/holds/${hold.hold_id}/extend`);
    assert.ok([404, 409].includes(response.status), response.text);
    assert.equal(await event.status(event.seats[0].seat_id), 'available');
  });

  it('an extension answers with every field of a hold', async () => {
    const event = await organization.event();
    const buyer = organization.buyer();
    const hold = await event.hold(buyer, event.seats[0]);
    isHold(ok(await buyer.post(`/api/holds/${hold.hold_id}/extend`)), { seat: event.seats[0], event: event.id });
    isHold(ok(await buyer.get(`/api/holds/${hold.hold_id}`)), { seat: event.seats[0], event: event.id });
    for (const one of ok(await buyer.get('/api/holds'))) isHold(one, { event: event.id });
  });
});
