// SPDX-License-Identifier: Apache-2.0
// Checkouts and payments: start, totals, the four simulated payment tokens, cancelling, money that comes late, and what
// the end of a hold or of an event does to a checkout.

import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';

import { fails, failsWithOneOf, ok } from '../lib/client.mjs';
import { start } from '../lib/server.mjs';
import { exactKeys, hasKeys, isCheckout, isTicket, saysNothingOf, UUID, unix } from '../lib/shape.mjs';
import { openStream } from '../lib/sse.mjs';
import { uuid } from '../lib/token.mjs';
import { waitFor, waitUntilUnix } from '../lib/wait.mjs';
import { block, buy, layoutOf, World } from '../lib/world.mjs';

const PRICED = layoutOf(block('A', 1, [10], { price: 1250, name: 'Stalls' }), block('B', 1, [10], { price: 400 }));

describe('checkout', { concurrency: 16 }, () => {
  let server;
  let world;
  let organization;

  before(async () => {
    server = await start();
    world = new World(server);
    organization = await world.organization();
  });
  after(() => server.stop());

  const priced = (policy = {}, more = {}) => organization.event({ layout: PRICED, policy, ...more });
  const read = async (caller, checkout) => ok(await caller.get(`/api/checkouts/${checkout.checkout_id}`));
  const complete = (caller, checkout, payment_token, options) =>
    caller.post(`/api/checkouts/${checkout.checkout_id}/complete`, { payment_token }, options);
  const cancel = (caller, checkout, body = {}) => caller.post(`/api/checkouts/${checkout.checkout_id}/cancel`, body);
  const settled = (caller, checkout, status, limit) =>
    waitFor(`checkout to be ${status}`, async () => {
      const now = await read(caller, checkout);
      return now.status === status ? now : undefined;
    }, limit);
  const ids = (holds) => holds.map((hold) => hold.hold_id);

  it('start gathers all my active holds of the event, adds up the prices and extends each hold', async () => {
    const [event, elsewhere] = [await priced({ hold_ttl_seconds: 60, checkout_extension_seconds: 90, hold_max_seconds: 600 }), await priced()];
    const buyer = organization.buyer();
    const holds = [await event.hold(buyer, event.seats[0]), await event.hold(buyer, event.seats[1]), await event.hold(buyer, event.seats[10])];
    await elsewhere.hold(buyer, elsewhere.seats[0]);
    await event.hold(organization.buyer(), event.seats[2]);
    const checkout = ok(await event.checkout(buyer), 201);
    isCheckout(checkout, { status: 'pending_payment', seats: holds.map((hold) => hold.seat_id), total: 2900, event: event.id });
    assert.equal(checkout.currency, 'EUR');
    for (const hold of holds) {
      assert.equal(ok(await buyer.get(`/api/holds/${hold.hold_id}`)).held_until_unix, hold.held_until_unix + 90);
    }
    assert.ok(Math.abs(unix(checkout.expires_at) - (holds[0].held_until_unix + 90)) <= 1);
    isCheckout(await read(buyer, checkout), { status: 'pending_payment', total: 2900 });
    const rows = await event.audit({ action: 'checkout_started' });
    assert.equal(rows.length, 1);
  });

  it('start again with the same holds is 200, the same checkout, nothing extended', async () => {
    const event = await priced({ hold_ttl_seconds: 60, checkout_extension_seconds: 90, hold_max_seconds: 600 });
    const buyer = organization.buyer();
    const holds = ok(await event.holdMany(buyer, event.seats.slice(0, 2)), 201).holds;
    const first = ok(await event.checkout(buyer), 201);
    const again = ok(await event.checkout(buyer), 200);
    assert.equal(again.checkout_id, first.checkout_id);
    assert.equal(again.expires_at, first.expires_at);
    const named = ok(await event.checkout(buyer, { hold_ids: ids(holds).reverse() }), 200);
    assert.equal(named.checkout_id, first.checkout_id);
    assert.equal(ok(await buyer.get(`/api/holds/${holds[0].hold_id}`)).held_until_unix, holds[0].held_until_unix + 90);
  });

  it('start at the cap of an extension still starts', async () => {
    const event = await priced({ hold_ttl_seconds: 60, hold_max_seconds: 60 });
    const buyer = organization.buyer();
    const hold = await event.hold(buyer, event.seats[0]);
    const checkout = ok(await event.checkout(buyer), 201);
    isCheckout(checkout, { status: 'pending_payment' });
    assert.equal(ok(await buyer.get(`/api/holds/${hold.hold_id}`)).held_until, hold.held_until);
  });

  it('start with named holds takes those alone', async () => {
    const event = await priced();
    const buyer = organization.buyer();
    const holds = ok(await event.holdMany(buyer, event.seats.slice(0, 3)), 201).holds;
    const checkout = ok(await event.checkout(buyer, { hold_ids: [holds[1].hold_id] }), 201);
    isCheckout(checkout, { seats: [holds[1].seat_id], total: 1250 });
  });

  it('start with a cart token takes the holds of that cart', async () => {
    const event = await priced();
    const buyer = organization.buyer();
    const mine = await event.hold(buyer, event.seats[0], { cart_token: 'cart one' });
    await event.hold(buyer, event.seats[1], { cart_token: 'cart two' });
    await event.hold(buyer, event.seats[2]);
    isCheckout(ok(await event.checkout(buyer, { cart_token: 'cart one' }), 201), { seats: [mine.seat_id], total: 1250 });
    fails(await event.checkout(buyer, { cart_token: 'cart three' }), 400, 'no_active_holds');
    fails(await event.checkout(organization.buyer(), { cart_token: 'cart one' }), 400, 'no_active_holds');
  });

  it('naming a hold in another checkout moves it there', async () => {
    const event = await priced();
    const buyer = organization.buyer();
    const holds = ok(await event.holdMany(buyer, [event.seats[0], event.seats[1], event.seats[10]]), 201).holds;
    const bySeat = (seat) => holds.find((hold) => hold.seat_id === seat.seat_id).hold_id;
    const first = ok(await event.checkout(buyer, { hold_ids: [bySeat(event.seats[0]), bySeat(event.seats[10])] }), 201);
    assert.equal(first.total_cents, 1650);
    const second = ok(await event.checkout(buyer, { hold_ids: [bySeat(event.seats[10]), bySeat(event.seats[1])] }), 201);
    assert.notEqual(second.checkout_id, first.checkout_id);
    isCheckout(await read(buyer, first), { status: 'pending_payment', seats: [event.seats[0].seat_id], total: 1250 });
    isCheckout(await read(buyer, second), { status: 'pending_payment', total: 1650 });
    const third = ok(await event.checkout(buyer), 201);
    isCheckout(third, { total: 2900 });
    for (const old of [first, second]) {
      const now = await read(buyer, old);
      assert.deepEqual(now.seats, []);
      assert.ok(['cancelled', 'expired'].includes(now.status), `an emptied checkout ends, it is ${now.status}`);
      fails(await complete(buyer, old, 'tok_ok'), 409, 'checkout_not_payable');
    }
    assert.equal((await event.occupancy()).held, 3, 'moving releases nothing');
  });

  it('start without holds, with holds of two events, and with bad shapes is refused', async () => {
    const [event, elsewhere] = [await priced(), await priced()];
    const buyer = organization.buyer();
    fails(await event.checkout(buyer), 400, 'no_active_holds');
    const [here, there] = [await event.hold(buyer, event.seats[0]), await elsewhere.hold(buyer, elsewhere.seats[0])];
    fails(await event.checkout(buyer, { hold_ids: ids([here, there]) }), 400, 'mixed_events');
    fails(await event.checkout(buyer, { hold_ids: ids([there]) }), 400, 'mixed_events');
    fails(await buyer.post('/api/checkouts', { event_id: uuid() }), 404, 'event_not_found');
    for (const body of [{}, { event_id: 'x' }, { event_id: 5 }, { event_id: event.id, hold_ids: [] }, { event_id: event.id, hold_ids: 'x' },
      { event_id: event.id, hold_ids: ['x'] }, { event_id: event.id, hold_ids: [5] }, { event_id: event.id, cart_token: '' },
      { event_id: event.id, hold_ids: [here.hold_id], cart_token: 'both' }, [], 'null']) {
      fails(await buyer.post('/api/checkouts', body), 400, 'invalid_request');
    }
    fails(await event.checkout(buyer, { hold_ids: [uuid()] }), 404, 'hold_not_found');
    assert.equal(ok(await buyer.get(`/api/holds/${here.hold_id}`)).held_until, here.held_until, 'nothing was extended');
  });

  it('start with the hold of another buyer is refused and touches nothing', async () => {
    const event = await priced();
    const [buyer, other] = [organization.buyer(), organization.buyer()];
    const [mine, theirs] = [await event.hold(buyer, event.seats[0]), await event.hold(other, event.seats[1])];
    const response = await event.checkout(buyer, { hold_ids: ids([mine, theirs]) });
    fails(response, 403, 'not_hold_owner');
    saysNothingOf(response.text, other.user);
    assert.equal(ok(await other.get(`/api/holds/${theirs.hold_id}`)).held_until, theirs.held_until);
    assert.equal(ok(await buyer.get(`/api/holds/${mine.hold_id}`)).held_until, mine.held_until);
  });

  it('start with an expired hold is holds_expired', async () => {
    const event = await priced({ hold_ttl_seconds: 1, release_grace_seconds: 30 });
    const buyer = organization.buyer();
    const hold = await event.hold(buyer, event.seats[0]);
    await waitUntilUnix(hold.held_until_unix + 1.2);
    fails(await event.checkout(buyer, { hold_ids: [hold.hold_id] }), 409, 'holds_expired');
    failsWithOneOf(await event.checkout(buyer), [400, 'no_active_holds'], [409, 'holds_expired']);
  });

  it('another buyer can neither read, pay nor cancel it', async () => {
    const event = await priced();
    const [buyer, other] = [organization.buyer(), organization.buyer()];
    await event.hold(buyer, event.seats[0]);
    const checkout = ok(await event.checkout(buyer), 201);
    for (const response of [await other.get(`/api/checkouts/${checkout.checkout_id}`), await complete(other, checkout, 'tok_ok'), await cancel(other, checkout)]) {
      failsWithOneOf(response, [403, 'forbidden'], [404, 'checkout_not_found'], [403, 'not_hold_owner']);
      saysNothingOf(response.text, buyer.user, event.seats[0].seat_id);
    }
    assert.equal((await read(buyer, checkout)).status, 'pending_payment');
  });

  it('unknown checkouts are 404, bad ids and bodies 400', async () => {
    const buyer = organization.buyer();
    fails(await buyer.get(`/api/checkouts/${uuid()}`), 404, 'checkout_not_found');
    fails(await buyer.post(`/api/checkouts/${uuid()}/complete`, { payment_token: 'tok_ok' }), 404, 'checkout_not_found');
    fails(await buyer.post(`/api/checkouts/${uuid()}/cancel`), 404, 'checkout_not_found');
    fails(await buyer.get('/api/checkouts/x'), 400, 'invalid_request');
    const event = await priced();
    await event.hold(buyer, event.seats[0]);
    const checkout = ok(await event.checkout(buyer), 201);
    for (const body of [{}, { payment_token: '' }, { payment_token: 5 }, { payment_token: null }, [], '{', { payment_token: 'x'.repeat(5000) }]) {
      fails(await buyer.post(`/api/checkouts/${checkout.checkout_id}/complete`, body), 400, 'invalid_request');
    }
    for (const body of [{ reason: 5 }, { notes: 5 }, { notes: 'x'.repeat(60000) }, []]) {
      fails(await cancel(buyer, checkout, body), 400, 'invalid_request');
    }
    assert.equal((await read(buyer, checkout)).status, 'pending_payment');
  });

  it('tok_ok pays: tickets with unguessable codes, seats sold, holds gone', async () => {
    const event = await priced();
    const buyer = organization.buyer();
    const holds = ok(await event.holdMany(buyer, [event.seats[0], event.seats[10]]), 201).holds;
    const checkout = ok(await event.checkout(buyer), 201);
    const paid = ok(await complete(buyer, checkout, 'tok_ok'));
    isCheckout(paid, { status: 'completed', seats: holds.map((hold) => hold.seat_id), total: 1650 });
    assert.equal(paid.tickets.length, 2);
    for (const ticket of paid.tickets) isTicket(ticket);
    assert.notEqual(paid.tickets[0].code, paid.tickets[1].code);
    assert.deepEqual(paid.tickets.map((ticket) => ticket.price_cents).sort(), [1250, 400]);
    assert.deepEqual(paid.tickets.map((ticket) => ticket.seat_id).sort(), holds.map((hold) => hold.seat_id).sort());
    assert.deepEqual((await read(buyer, checkout)).tickets, paid.tickets);
    const occupancy = await event.occupancy();
    assert.deepEqual([occupancy.held, occupancy.sold], [0, 2]);
    assert.deepEqual(ok(await buyer.get('/api/holds')), []);
    assert.equal((await event.audit({ action: 'checkout_completed' })).length, 1);
  });

  it('completing again gives the same tickets; cancelling a completed one is refused', async () => {
    const event = await priced();
    const buyer = organization.buyer();
    const paid = await buy(event, buyer, [event.seats[0], event.seats[1]]);
    for (const token of ['tok_ok', 'tok_declined']) {
      assert.deepEqual(ok(await complete(buyer, paid, token)).tickets, paid.tickets);
    }
    fails(await cancel(buyer, paid), 409, 'checkout_not_cancellable');
    assert.equal((await event.occupancy()).sold, 2);
  });

  it('several completes at the same moment sell once and show the same tickets', async () => {
    const event = await priced();
    const buyer = organization.buyer();
    ok(await event.holdMany(buyer, event.seats.slice(0, 2)), 201);
    const checkout = ok(await event.checkout(buyer), 201);
    const answers = await Promise.all(Array.from({ length: 8 }, () => complete(buyer, checkout, 'tok_ok')));
    for (const answer of answers) assert.ok([200, 202].includes(answer.status), answer.text);
    const final = await settled(buyer, checkout, 'completed');
    assert.equal(final.tickets.length, 2);
    for (const answer of answers) if (answer.status === 200) assert.deepEqual(answer.body.data.tickets, final.tickets);
    assert.equal((await event.audit({ action: 'checkout_completed' })).length, 1);
  });

  it('tok_declined answers 402 and releases the seats as payment_failed', async () => {
    const event = await priced();
    const buyer = organization.buyer();
    const holds = ok(await event.holdMany(buyer, event.seats.slice(0, 2)), 201).holds;
    const checkout = ok(await event.checkout(buyer), 201);
    fails(await complete(buyer, checkout, 'tok_declined'), 402, 'payment_failed');
    assert.equal((await event.occupancy()).available, 20);
    isCheckout(await read(buyer, checkout), { status: 'failed' });
    fails(await complete(buyer, checkout, 'tok_ok'), 409, 'checkout_not_payable');
    fails(await cancel(buyer, checkout), 409, 'checkout_not_cancellable');
    const rows = await event.audit({ action: 'seat_released' });
    assert.deepEqual(rows.map((row) => row.reason), ['payment_failed', 'payment_failed']);
    assert.deepEqual(rows.map((row) => row.entity_id).sort(), ids(holds).sort());
    assert.equal((await event.audit({ action: 'checkout_failed' })).length, 1);
    ok(await event.reserve(organization.buyer(), event.seats[0]), 201);
  });

  it('tok_slow keeps the seats while it thinks and then pays', async () => {
    const event = await priced();
    const buyer = organization.buyer();
    const hold = await event.hold(buyer, event.seats[0]);
    const checkout = ok(await event.checkout(buyer), 201);
    const answer = complete(buyer, checkout, 'tok_slow');
    await settled(buyer, checkout, 'processing');
    fails(await cancel(buyer, checkout), 409, 'payment_in_progress');
    fails(await buyer.del(`/api/holds/${hold.hold_id}`), 409, 'payment_in_progress');
    fails(await event.reserve(organization.buyer(), event.seats[0]), 409, 'seat_held_by_another_user');
    const again = await complete(buyer, checkout, 'tok_ok');
    assert.ok([200, 202].includes(again.status), again.text);
    const released = ok(await organization.admin.post('/api/admin/seats/release', { hold_ids: [hold.hold_id] }));
    assert.equal(released.seats_released, 0);
    assert.deepEqual(released.skipped.map((entry) => entry.id), [hold.hold_id]);
    const first = await answer;
    assert.ok([200, 202].includes(first.status), first.text);
    const final = await settled(buyer, checkout, 'completed');
    assert.equal(final.tickets.length, 1);
  });

  it('a payment in flight outlasts the hold\'s own end', async () => {
    const event = await priced({ hold_ttl_seconds: 6, hold_max_seconds: 6, release_grace_seconds: 0 });
    const buyer = organization.buyer();
    const hold = await event.hold(buyer, event.seats[0]);
    const checkout = ok(await event.checkout(buyer), 201);
    await waitUntilUnix(hold.held_until_unix - 2); // the payment takes three seconds
    const answer = await complete(buyer, checkout, 'tok_slow');
    assert.ok([200, 202].includes(answer.status), answer.text);
    await settled(buyer, checkout, 'completed');
    assert.equal(await event.status(event.seats[0].seat_id), 'sold');
  });

  it('tok_unknown answers 202 while nobody knows, and is settled by asking again', async () => {
    const event = await priced();
    const buyer = organization.buyer();
    await event.hold(buyer, event.seats[0]);
    const checkout = ok(await event.checkout(buyer), 201);
    const answer = await complete(buyer, checkout, 'tok_unknown');
    const data = ok(answer, 202);
    assert.equal(data.checkout_id, checkout.checkout_id);
    assert.equal(data.status, 'processing');
    const final = await settled(buyer, checkout, 'completed', 60000);
    assert.equal(final.tickets.length, 1);
    assert.deepEqual(ok(await complete(buyer, checkout, 'tok_unknown')).tickets, final.tickets);
  });

  it('an unknown payment token buys nothing', async () => {
    const event = await priced();
    const buyer = organization.buyer();
    await event.hold(buyer, event.seats[0]);
    const checkout = ok(await event.checkout(buyer), 201);
    failsWithOneOf(await complete(buyer, checkout, 'tok_made_up'), [402, 'payment_failed'], [400, 'invalid_request']);
    assert.equal((await event.occupancy()).sold, 0);
  });

  it('cancel releases everything with the documented body, and again gives the same body', async () => {
    const event = await priced();
    const buyer = organization.buyer();
    const holds = ok(await event.holdMany(buyer, event.seats.slice(0, 2)), 201).holds;
    const checkout = ok(await event.checkout(buyer), 201);
    const body = ok(await cancel(buyer, checkout, { reason: 'user_cancelled', notes: 'Customer decided against purchase' }));
    exactKeys(body, ['status', 'checkout_id', 'released_seats', 'released_count', 'message']);
    assert.equal(body.status, 'cancelled');
    assert.equal(body.checkout_id, checkout.checkout_id);
    assert.equal(body.released_count, 2);
    assert.deepEqual(body.released_seats.map((seat) => seat.seat_id).sort(), holds.map((hold) => hold.seat_id).sort());
    for (const seat of body.released_seats) hasKeys(seat, ['seat_id', 'block', 'row', 'number']);
    assert.ok(['A-1', 'Stalls'].includes(body.released_seats[0].block));
    assert.equal((await event.occupancy()).available, 20);
    assert.deepEqual(ok(await cancel(buyer, checkout)), body);
    isCheckout(await read(buyer, checkout), { status: 'cancelled' });
    fails(await complete(buyer, checkout, 'tok_ok'), 409, 'checkout_not_payable');
    const rows = await event.audit({ action: 'seat_released' });
    assert.deepEqual(rows.map((row) => row.reason), ['user_cancelled', 'user_cancelled'], 'cancelling twice releases once');
    assert.equal((await event.audit({ action: 'checkout_cancelled' })).length, 1);
  });

  it('cancelling again never frees a seat that somebody else holds by now', async () => {
    const event = await priced();
    const [buyer, next] = [organization.buyer(), organization.buyer()];
    await event.hold(buyer, event.seats[0]);
    const checkout = ok(await event.checkout(buyer), 201);
    ok(await cancel(buyer, checkout));
    await event.hold(next, event.seats[0]);
    ok(await cancel(buyer, checkout));
    assert.equal(await event.status(event.seats[0].seat_id), 'held');
  });

  it('releasing a hold of a pending checkout drops its seat and price; the last one ends it', async () => {
    const event = await priced();
    const buyer = organization.buyer();
    const [first, second] = [await event.hold(buyer, event.seats[0]), await event.hold(buyer, event.seats[10])];
    const checkout = ok(await event.checkout(buyer), 201);
    ok(await buyer.del(`/api/holds/${first.hold_id}`));
    isCheckout(await read(buyer, checkout), { status: 'pending_payment', seats: [second.seat_id], total: 400 });
    ok(await buyer.del(`/api/holds/${second.hold_id}`));
    isCheckout(await read(buyer, checkout), { status: 'cancelled', seats: [], total: 0 });
    fails(await complete(buyer, checkout, 'tok_ok'), 409, 'checkout_not_payable');
  });

  it('paying what is left after one hold was released charges only that', async () => {
    const event = await priced();
    const buyer = organization.buyer();
    const [first, second] = [await event.hold(buyer, event.seats[0]), await event.hold(buyer, event.seats[10])];
    const checkout = ok(await event.checkout(buyer), 201);
    ok(await buyer.del(`/api/holds/${first.hold_id}`));
    const paid = ok(await complete(buyer, checkout, 'tok_ok'));
    assert.equal(paid.total_cents, 400);
    assert.deepEqual(paid.tickets.map((ticket) => ticket.seat_id), [second.seat_id]);
  });

  it('paying after a hold has run out charges nothing: holds_expired, the checkout expired, other holds stay', async () => {
    const event = await priced({ hold_ttl_seconds: 300, hold_max_seconds: 300, release_grace_seconds: 30 });
    const buyer = organization.buyer();
    const lasting = await event.hold(buyer, event.seats[0]);
    ok(await event.patch({ policy: { hold_ttl_seconds: 5, hold_max_seconds: 5 } }));
    const short = await event.hold(buyer, event.seats[1]);
    const checkout = ok(await event.checkout(buyer), 201);
    isCheckout(checkout, { status: 'pending_payment', total: 2500 });
    await waitUntilUnix(short.held_until_unix + 0.2);
    fails(await complete(buyer, checkout, 'tok_ok'), 409, 'holds_expired');
    isCheckout(await read(buyer, checkout), { status: 'expired' });
    fails(await complete(buyer, checkout, 'tok_ok'), 409, 'checkout_not_payable');
    fails(await cancel(buyer, checkout), 409, 'checkout_not_cancellable');
    assert.equal(ok(await buyer.get(`/api/holds/${lasting.hold_id}`)).held_until, lasting.held_until);
    assert.equal((await event.occupancy()).sold, 0);
    isCheckout(ok(await event.checkout(buyer, { hold_ids: [lasting.hold_id] }), 201), { status: 'pending_payment', total: 1250 });
  });

  it('a checkout whose only hold runs out becomes expired and cannot be paid', async () => {
    const event = await priced({ hold_ttl_seconds: 4, hold_max_seconds: 4, release_grace_seconds: 0 });
    const buyer = organization.buyer();
    await event.hold(buyer, event.seats[0]);
    const checkout = ok(await event.checkout(buyer), 201);
    const ended = await settled(buyer, checkout, 'expired');
    isCheckout(ended, { seats: [], total: 0 });
    fails(await complete(buyer, checkout, 'tok_ok'), 409, 'checkout_not_payable');
    fails(await cancel(buyer, checkout), 409, 'checkout_not_cancellable');
    assert.equal(await event.status(event.seats[0].seat_id), 'available');
  });

  it('a price changed by an admin counts for new holds only', async () => {
    const event = await priced();
    const buyer = organization.buyer();
    await event.hold(buyer, event.seats[0]);
    const data = ok(await buyer.get(event.path));
    const blockId = data.blocks[0].block_id ?? data.blocks[0].id;
    assert.match(blockId, UUID);
    ok(await organization.admin.patch(`${event.adminPath}/blocks/${blockId}`, { price_cents: 9900 }));
    await event.hold(buyer, event.seats[1]);
    const checkout = ok(await event.checkout(buyer), 201);
    assert.equal(checkout.total_cents, 1250 + 9900);
    const paid = ok(await complete(buyer, checkout, 'tok_ok'));
    assert.deepEqual(paid.tickets.map((ticket) => ticket.price_cents).sort((a, b) => a - b), [1250, 9900]);
  });

  it('payment_max_seconds ends an unknown payment as failed; money that comes later takes free seats again', async () => {
    const event = await priced({ payment_max_seconds: 1 });
    const buyer = organization.buyer();
    await event.hold(buyer, event.seats[0]);
    const checkout = ok(await event.checkout(buyer), 201);
    const news = await openStream(server, '/api/stream', { token: buyer.bearer });
    const answer = complete(buyer, checkout, 'tok_slow');
    await settled(buyer, checkout, 'failed');
    assert.equal(await event.status(event.seats[0].seat_id), 'available');
    const final = await settled(buyer, checkout, 'completed');
    assert.equal(final.tickets.length, 1);
    assert.equal(await event.status(event.seats[0].seat_id), 'sold');
    await news.waitEvent('checkout_updated', (data) => data.checkout_id === checkout.checkout_id && data.status === 'completed');
    news.close();
    assert.ok([200, 202, 402].includes((await answer).status));
    assert.equal((await event.audit({ action: 'checkout_completed' })).length, 1);
  });

  it('late money is refunded when somebody else has the seat by then', async () => {
    const event = await priced({ payment_max_seconds: 1 });
    const [buyer, next] = [organization.buyer(), organization.buyer()];
    ok(await event.holdMany(buyer, event.seats.slice(0, 2)), 201);
    const checkout = ok(await event.checkout(buyer), 201);
    const news = await openStream(server, '/api/stream', { token: buyer.bearer });
    const answer = complete(buyer, checkout, 'tok_slow');
    await settled(buyer, checkout, 'failed');
    await event.hold(next, event.seats[1]);
    const rows = await waitFor('the refund to be audited', async () => {
      const found = await event.audit({ action: 'checkout_refunded' });
      return found.length > 0 ? found : undefined;
    });
    assert.equal(rows.length, 1);
    const final = await read(buyer, checkout);
    assert.ok(['refunded', 'failed'].includes(final.status), final.status);
    const states = (await event.list()).slice(0, 2).map((seat) => seat.status);
    assert.deepEqual(states, ['available', 'held'], 'all seats or none');
    await news.wait('news of the refund', (stream) => stream.of('checkout_updated').some((entry) => entry.data.includes('refund')));
    news.close();
    await answer;
  });

  it('cancelling an event releases holds, cancels pending checkouts and refunds a payment in flight', async () => {
    const event = await priced();
    const [holder, pending, paying] = [organization.buyer(), organization.buyer(), organization.buyer()];
    const held = await event.hold(holder, event.seats[0]);
    await event.hold(pending, event.seats[1]);
    const waiting = ok(await event.checkout(pending), 201);
    await event.hold(paying, event.seats[2]);
    const inFlight = ok(await event.checkout(paying), 201);
    const answer = complete(paying, inFlight, 'tok_slow');
    await settled(paying, inFlight, 'processing');
    ok(await event.patch({ status: 'cancelled' }));
    assert.equal((await read(pending, waiting)).status, 'cancelled');
    assert.deepEqual(ok(await holder.get('/api/holds')), []);
    const rows = await event.audit({ action: 'seat_released' });
    assert.ok(rows.filter((row) => row.reason === 'admin_override').length >= 2);
    assert.ok(rows.some((row) => row.entity_id === held.hold_id && row.reason === 'admin_override'));
    await answer;
    await settled(paying, inFlight, 'refunded');
    await waitFor('the refund to be audited', async () => (await event.audit({ action: 'checkout_refunded' })).length > 0);
  });

  it('the total of fifty seats is exact', async () => {
    const event = await organization.event({ layout: layoutOf(block('A', 1, [50], { price: 2147483 })) });
    const buyer = organization.buyer();
    ok(await event.holdMany(buyer, event.seats), 201);
    const checkout = ok(await event.checkout(buyer), 201);
    assert.equal(checkout.total_cents, 50 * 2147483);
  });
});
