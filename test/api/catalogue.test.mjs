// SPDX-License-Identifier: Apache-2.0
// What a buyer can read: events, layout, seats, availability, occupancy; and the operational endpoints.

import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';

import { fails, ok, send } from '../lib/client.mjs';
import { start } from '../lib/server.mjs';
import { exactKeys, hasKeys, isOccupancy, STATUSES, TIME, UUID, UUID7, unix } from '../lib/shape.mjs';
import { now, uuid } from '../lib/token.mjs';
import { block, buy, layoutOf, metric, World } from '../lib/world.mjs';

const HALL = layoutOf(
  block('A', 1, [3, 5, 4], { price: 2500, name: 'Parterre left' }),
  block('A', 2, [['10', '11', '12A'], 2], { price: 2000, capacity: 4 }),
  block('AA', 1, [1], { price: 500 }),
);
const ORDER = ['A-1', 'A-2', 'AA-1'];
const SIZES = { 'A-1': 12, 'A-2': 5, 'AA-1': 1 };

describe('catalogue', { concurrency: 8 }, () => {
  let server;
  let world;
  let organization;
  let event;
  let buyer;

  before(async () => {
    server = await start();
    world = new World(server);
    organization = await world.organization();
    event = await organization.event({ layout: HALL, policy: { hold_ttl_seconds: 120 } });
    buyer = organization.buyer();
  });
  after(() => server.stop());

  it('events list shows published and live events with policy and blocks, and no drafts', async () => {
    const own = await world.organization();
    const published = await own.event({ layout: HALL, policy: { hold_ttl_seconds: 77 } });
    const live = await own.event({ status: 'live' });
    const draft = await own.event({ status: 'draft' });
    const list = ok(await own.buyer().get('/api/events'));
    const ids = list.map((item) => item.event_id);
    assert.deepEqual([...ids].sort(), [published.id, live.id].sort());
    assert.ok(!ids.includes(draft.id));
    const item = list.find((candidate) => candidate.event_id === published.id);
    hasKeys(item, ['event_id', 'name', 'status', 'sale_start', 'sale_end', 'currency', 'policy', 'blocks']);
    assert.equal(item.status, 'published');
    assert.match(item.sale_start, TIME);
    assert.equal(item.policy.hold_ttl_seconds, 77);
    assert.deepEqual(item.blocks.map((entry) => entry.block), ORDER);
  });

  it('one event answers with the whole policy, defaults filled in, and its blocks', async () => {
    const data = ok(await buyer.get(event.path));
    assert.equal(data.event_id, event.id);
    assert.match(data.event_id, UUID7);
    assert.deepEqual(data.policy, {
      hold_ttl_seconds: 120,
      checkout_extension_seconds: 300,
      hold_max_seconds: 1200,
      release_grace_seconds: 10,
      payment_max_seconds: 900,
      max_seats_per_user: 0,
      rate_limit_holds: 0,
      rate_limit_window_seconds: 300,
      forbid_single_seat_gaps: false,
    });
    const [first, second] = data.blocks;
    hasKeys(first, ['block', 'section', 'subsection', 'name', 'capacity', 'price_cents']);
    assert.equal(first.name, 'Parterre left');
    assert.equal(first.price_cents, 2500);
    assert.equal(first.capacity, 12, 'without a capacity of its own a block has as many as it has seats');
    assert.equal(second.capacity, 4);
  });

  it('an event without any policy gets the defaults of the contract', async () => {
    const made = ok(await organization.admin.post('/api/admin/events', { name: 'Plain' }), 201);
    assert.deepEqual(made.policy, {
      hold_ttl_seconds: 300,
      checkout_extension_seconds: 300,
      hold_max_seconds: 1200,
      release_grace_seconds: 10,
      payment_max_seconds: 900,
      max_seats_per_user: 10,
      rate_limit_holds: 10,
      rate_limit_window_seconds: 300,
      forbid_single_seat_gaps: false,
    });
    assert.equal(made.status, 'draft');
  });

  it('a draft, an unknown event and a bad id are told apart from an existing one', async () => {
    const draft = await organization.event({ status: 'draft' });
    fails(await buyer.get(draft.path), 404, 'event_not_found');
    fails(await buyer.get(`/api/events/${uuid()}`), 404, 'event_not_found');
    fails(await buyer.get('/api/events/not-a-uuid'), 400, 'invalid_request');
    for (const tail of ['layout', 'seats', 'availability', 'occupancy']) {
      fails(await buyer.get(`/api/events/${uuid()}/${tail}`), 404, 'event_not_found');
    }
  });

  it('layout is the static map in layout order, with labels, prices and seat ids', async () => {
    const response = await buyer.get(`${event.path}/layout`);
    assert.equal(response.status, 200);
    const { data } = response.body;
    assert.deepEqual(data.blocks.map((entry) => `${entry.section}-${entry.subsection}`), ORDER);
    assert.deepEqual(data.blocks.map((entry) => entry.price_cents), [2500, 2000, 500]);
    assert.deepEqual(data.blocks[0].rows.map((row) => row.seat_ids.length), [3, 5, 4]);
    assert.deepEqual(data.blocks.flatMap((entry) => entry.rows.flatMap((row) => row.seat_ids)), event.seats.map((seat) => seat.seat_id));
    assert.deepEqual(data.blocks[1].rows[0].seat_numbers, ['10', '11', '12A']);
    assert.deepEqual(data.blocks[1].rows.map((row) => row.label), ['1', '2']);
  });

  it('layout has a strong ETag, may be cached, and answers 304 to it', async () => {
    const first = await buyer.get(`${event.path}/layout`);
    assert.match(first.headers.etag, /^"[^"]+"$/, 'strong: no W/');
    assert.ok(!/no-store/.test(first.headers['cache-control'] ?? ''));
    const second = await buyer.get(`${event.path}/layout`, { headers: { 'if-none-match': first.headers.etag } });
    assert.equal(second.status, 304);
    assert.equal(second.text, '');
    const third = await buyer.get(`${event.path}/layout`, { headers: { 'if-none-match': '"other"' } });
    assert.equal(third.status, 200);
    const fresh = await organization.event({ layout: layoutOf(block('A', 1, [2])) });
    const before1 = await buyer.get(`${fresh.path}/layout`);
    ok(await organization.admin.put(`${fresh.adminPath}/layout`, layoutOf(block('A', 1, [3]))));
    const after1 = await buyer.get(`${fresh.path}/layout`);
    assert.notEqual(after1.headers.etag, before1.headers.etag, 'another layout, another tag');
  });

  it('layout does not change while seats are held and sold', async () => {
    const own = await organization.event({ layout: layoutOf(block('A', 1, [4])) });
    const before1 = await buyer.get(`${own.path}/layout`);
    await own.hold(organization.buyer(), own.seats[0]);
    await buy(own, organization.buyer(), [own.seats[1]]);
    const after1 = await buyer.get(`${own.path}/layout`);
    assert.equal(after1.text, before1.text);
    assert.equal(after1.headers.etag, before1.headers.etag);
  });

  it('seats come in layout order with exactly the documented fields', async () => {
    const seats = ok(await buyer.get(`${event.path}/seats`));
    assert.equal(seats.length, 18);
    for (const seat of seats) {
      exactKeys(seat, ['seat_id', 'block', 'row', 'seat_number', 'status']);
      assert.match(seat.seat_id, UUID);
      assert.equal(seat.status, 'available');
    }
    assert.deepEqual([...new Set(seats.map((seat) => seat.block))], ORDER);
    assert.deepEqual(
      seats.filter((seat) => seat.block === 'A-2').map((seat) => `${seat.row}/${seat.seat_number}`),
      ['1/10', '1/11', '1/12A', '2/1', '2/2'],
    );
    assert.equal(new Set(seats.map((seat) => seat.seat_id)).size, 18);
  });

  it('seats can be asked for one block or one section', async () => {
    const one = ok(await buyer.get(`${event.path}/seats?section=A&subsection=2`));
    assert.deepEqual([...new Set(one.map((seat) => seat.block))], ['A-2']);
    assert.equal(one.length, 5);
    const section = ok(await buyer.get(`${event.path}/seats?section=A`));
    assert.deepEqual([...new Set(section.map((seat) => seat.block))], ['A-1', 'A-2']);
    for (const query of ['?section=a1', '?section=A&subsection=x', '?section=A&subsection=0', '?section=ABCD']) {
      fails(await buyer.get(`${event.path}/seats${query}`), 400, 'invalid_request');
    }
  });

  it('my own hold is marked as mine with its id and end, to me alone', async () => {
    const own = await organization.event({ layout: layoutOf(block('A', 1, [3])) });
    const [holder, other] = [organization.buyer(), organization.buyer()];
    const hold = await own.hold(holder, own.seats[1]);
    const mine = await own.list(holder);
    assert.deepEqual(mine[1].mine, { hold_id: hold.hold_id, held_until: hold.held_until });
    assert.equal(mine[1].status, 'held');
    assert.ok(!('mine' in mine[0]));
    const theirs = await own.list(other);
    assert.equal(theirs[1].status, 'held');
    assert.ok(!('mine' in theirs[1]));
    assert.ok(!JSON.stringify(theirs).includes(hold.hold_id));
  });

  it('availability packs every seat into two bits in layout order', async () => {
    const own = await organization.event({ layout: layoutOf(block('A', 1, [5]), block('B', 1, [2])) });
    await own.hold(organization.buyer(), own.seats[1]);
    await buy(own, organization.buyer(), [own.seats[4]]);
    ok(await organization.admin.post(`${own.adminPath}/seats/block`, { seat_ids: [own.seats[6].seat_id] }));
    const data = ok(await buyer.get(`${own.path}/availability`));
    exactKeys(data, ['stream_id', 'layout_etag', 'count', 'states']);
    assert.equal(data.count, 7);
    assert.match(data.stream_id, /^\S+-\d+$/);
    const bytes = Buffer.from(data.states, 'base64');
    assert.equal(bytes.length, 2, 'four seats a byte, rounded up');
    const states = Array.from({ length: 7 }, (_, index) => STATUSES[(bytes[index >> 2] >> (2 * (index % 4))) & 3]);
    assert.deepEqual(states, ['available', 'held', 'available', 'available', 'sold', 'available', 'blocked']);
    assert.deepEqual(states, (await own.list()).map((seat) => seat.status));
  });

  it('occupancy adds up, in total and per block, and follows every state', async () => {
    const own = await organization.event({ layout: layoutOf(block('A', 1, [4]), block('B', 2, [3])) });
    isOccupancy(await own.occupancy());
    await own.hold(organization.buyer(), own.seats[0]);
    await buy(own, organization.buyer(), [own.seats[5], own.seats[6]]);
    ok(await organization.admin.post(`${own.adminPath}/seats/block`, { seat_ids: [own.seats[3].seat_id] }));
    const data = await own.occupancy();
    isOccupancy(data);
    assert.match(data.timestamp, TIME);
    assert.ok(Math.abs(unix(data.timestamp) - now()) <= 10);
    const counts = ({ available, held, sold, blocked, total }) => [available, held, sold, blocked, total];
    assert.deepEqual(counts(data), [3, 1, 2, 1, 7]);
    assert.deepEqual(data.blocks.map((entry) => entry.block), ['A-1', 'B-2']);
    for (const entry of data.blocks) isOccupancy(entry);
    assert.deepEqual(data.blocks.map(counts), [[2, 1, 0, 1, 4], [1, 0, 2, 0, 3]]);
  });

  it('occupancy of an event without seats divides by nothing', async () => {
    const made = ok(await organization.admin.post('/api/admin/events', { name: 'Empty' }), 201);
    ok(await organization.admin.patch(`/api/admin/events/${made.event_id}`, { status: 'published' }));
    const data = ok(await buyer.get(`/api/events/${made.event_id}/occupancy`));
    isOccupancy(data);
    assert.equal(data.total, 0);
    assert.deepEqual(ok(await buyer.get(`/api/events/${made.event_id}/seats`)), []);
    assert.equal(ok(await buyer.get(`/api/events/${made.event_id}/availability`)).count, 0);
  });

  it('healthz and readyz answer without a token', async () => {
    const alive = await send(`${server.url}/healthz`);
    assert.equal(alive.status, 200);
    const ready = await send(`${server.url}/readyz`);
    assert.equal(ready.status, 200);
    assert.match(ready.text, /store/);
    assert.match(alive.headers['cache-control'], /no-store/);
    assert.ok(alive.headers['x-request-id']);
  });

  it('metrics are Prometheus text, every name ours, and count what happens', async () => {
    const { status, text, headers } = await send(`${server.url}/metrics`);
    assert.equal(status, 200);
    assert.match(headers['content-type'], /^text\/plain/);
    const typed = new Set();
    for (const line of text.split('\n')) {
      if (line === '') continue;
      if (line.startsWith('#')) {
        const match = /^# (HELP|TYPE) (holdfast_[a-z0-9_]+) /.exec(line);
        assert.ok(match, line);
        if (match[1] === 'TYPE') {
          assert.ok(!typed.has(match[2]), `${match[2]} is declared once`);
          typed.add(match[2]);
        }
        continue;
      }
      const match = /^(holdfast_[a-z0-9_]+)(\{[^{}]*\})? (-?[0-9.e+-]+|[+-]Inf|NaN)$/.exec(line);
      assert.ok(match, `not a sample: ${line}`);
      const family = match[1].replace(/_(bucket|sum|count)$/, '');
      assert.ok(typed.has(match[1]) || typed.has(family), `${match[1]} has a TYPE before it`);
    }
    for (const name of ['hold_attempts_total', 'hold_success_total', 'hold_conflict_total', 'hold_error_total', 'hold_expired_total',
      'hold_extended_total', 'hold_expired_before_checkout_total', 'hold_extension_failed_total', 'hold_converted_total',
      'releases_total', 'release_failures_total', 'hold_to_release_seconds', 'reaper_runs_total', 'reaper_found_total',
      'reaper_released_total', 'reaper_failed_total', 'reaper_run_seconds', 'reaper_last_run_timestamp_seconds', 'batch_size',
      'commit_seconds', 'queue_depth', 'http_request_seconds', 'command_seconds', 'holds_active']) {
      assert.ok(typed.has(`holdfast_${name}`), `holdfast_${name} is exported`);
    }
  });

  it('conflicts and successes are counted', async () => {
    const own = await organization.event();
    const conflicts = await metric(server, 'holdfast_hold_conflict_total');
    const successes = await metric(server, 'holdfast_hold_success_total');
    await own.hold(organization.buyer(), own.seats[0]);
    fails(await own.reserve(organization.buyer(), own.seats[0]), 409, 'seat_held_by_another_user');
    assert.ok((await metric(server, 'holdfast_hold_conflict_total')) >= conflicts + 1);
    assert.ok((await metric(server, 'holdfast_hold_success_total')) >= successes + 1);
  });

  it('the root is a page for people', async () => {
    const page = await send(`${server.url}/`);
    assert.equal(page.status, 200);
    assert.match(page.headers['content-type'], /^text\/html/);
    assert.match(page.text, /<html/i);
  });

  it('serve has no demo token path', async () => {
    fails(await send(`${server.url}/api/demo/token`, { method: 'POST', body: {} }), 404, 'not_found');
  });

  it('a request id is new for every request', async () => {
    const ids = new Set();
    for (let i = 0; i < 20; i++) ids.add((await buyer.get('/api/events')).headers['x-request-id']);
    assert.equal(ids.size, 20);
  });
});
