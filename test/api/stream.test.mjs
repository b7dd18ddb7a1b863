// SPDX-License-Identifier: Apache-2.0
// Live updates: snapshot first, frames after it, the caller's own news, resuming without loss, and readers that are slow
// or many.

import assert from 'node:assert/strict';
import { connect } from 'node:net';
import { after, before, describe, it } from 'node:test';

import { fails, ok, send } from '../lib/client.mjs';
import { start } from '../lib/server.mjs';
import { isOccupancy, saysNothingOf, STATUSES } from '../lib/shape.mjs';
import { openEventStream, openStream } from '../lib/sse.mjs';
import { uuid } from '../lib/token.mjs';
import { inParallel, pause, waitFor } from '../lib/wait.mjs';
import { block, buy, layoutOf, metric, World } from '../lib/world.mjs';

const ID = /^[^\s-]\S*-\d+$/;
const epochOf = (id) => id.slice(0, id.lastIndexOf('-'));

const COUNTS = ['available', 'held', 'sold', 'blocked'];
const countsOf = (object) => COUNTS.map((name) => object[name]);
/** What the statistics on a stream have said of each block so far, by its code. */
function toldBlocks(stream) {
  const told = new Map();
  for (const { json } of stream.of('stats')) {
    if (json.all) told.clear();
    for (const one of json.blocks) told.set(`${one.section}-${one.subsection}`, countsOf(one));
  }
  return told;
}

describe('stream', { concurrency: 12 }, () => {
  let server;
  let world;
  let organization;

  before(async () => {
    server = await start();
    world = new World(server);
    organization = await world.organization();
  });
  after(() => server.stop());

  it('begins with a snapshot of the occupancy and a stream id', async () => {
    const event = await organization.event();
    await event.hold(organization.buyer(), event.seats[0]);
    const stream = await openEventStream(event, organization.buyer());
    assert.match(stream.headers['cache-control'], /no-store/);
    const [snapshot] = stream.events;
    assert.match(snapshot.id, ID);
    isOccupancy(snapshot.json.occupancy);
    assert.equal(snapshot.json.occupancy.held, 1);
    assert.ok(stream.text.includes(snapshot.json.stream_id ?? snapshot.json.id));
    stream.close();
  });

  it('shows what others do, by index and state, with the occupancy after it', async () => {
    const event = await organization.event();
    const [reader, actor] = [organization.buyer(), organization.buyer()];
    const stream = await openEventStream(event, reader);
    const hold = await event.hold(actor, event.seats[7]);
    await stream.waitSeat(7, 'held');
    ok(await actor.del(`/api/holds/${hold.hold_id}`));
    await stream.waitSeat(7, 'available');
    await buy(event, actor, [event.seats[8]]);
    await stream.waitSeat(8, 'sold');
    ok(await organization.admin.post(`${event.adminPath}/seats/block`, { seat_ids: [event.seats[9].seat_id] }));
    await stream.waitSeat(9, 'blocked');
    ok(await organization.admin.post(`${event.adminPath}/seats/unblock`, { seat_ids: [event.seats[9].seat_id] }));
    await stream.waitSeat(9, 'available');
    const frames = stream.of('seats');
    for (const frame of frames) {
      assert.match(frame.id, ID);
      assert.equal(frame.json.id, frame.id);
      isOccupancy(frame.json.occupancy);
      for (const [index] of frame.json.seats) assert.ok(Number.isInteger(index) && index >= 0 && index < event.seats.length);
    }
    const { sold, available } = frames[frames.length - 1].json.occupancy;
    assert.deepEqual([sold, available], [1, 19]);
    const ids = stream.events.filter((entry) => entry.event !== 'stats').map((entry) => entry.id);
    assert.equal(new Set(ids.map(epochOf)).size, 1, 'one start, one epoch');
    const numbers = ids.map((id) => Number(id.slice(epochOf(id).length + 1)));
    for (let i = 1; i < numbers.length; i++) assert.ok(numbers[i] >= numbers[i - 1], 'ids never go back');
    saysNothingOf(stream.text, actor.user, hold.hold_id);
    stream.close();
  });

  it('says why a seat became free', async () => {
    const event = await organization.event();
    const actor = organization.buyer();
    const stream = await openEventStream(event, organization.buyer());
    const hold = await event.hold(actor, event.seats[0]);
    await stream.waitSeat(0, 'held');
    ok(await actor.del(`/api/holds/${hold.hold_id}`));
    const [, , reason] = await stream.waitSeat(0, 'available');
    assert.equal(reason, 'user_cancelled');
    stream.close();
  });

  it('statistics come after a change and are what the occupancy and the store say, block by block', async () => {
    const event = await organization.event({ layout: layoutOf(block('A', 1, [10]), block('A', 2, [6]), block('B', 1, [4])) });
    const actor = organization.buyer();
    await event.hold(actor, event.seats[0]);
    const stream = await openEventStream(event, organization.buyer());
    const first = await stream.waitEvent('stats');
    assert.equal(first.id, undefined, 'statistics have no id');
    assert.equal(first.json.all, true);
    assert.deepEqual(first.json.totals, { available: 19, held: 1, sold: 0, blocked: 0, total: 20 });
    const { blocks } = await event.occupancy();
    assert.deepEqual(first.json.blocks.map((one) => [`${one.section}-${one.subsection}`, one.block_id, countsOf(one)]),
      blocks.map((one) => [one.block, one.block_id, countsOf(one)]));

    await buy(event, organization.buyer(), [event.seats[10], event.seats[11]]);
    ok(await organization.admin.post(`${event.adminPath}/seats/block`, { seat_ids: [event.seats[12].seat_id] }));
    const { json: last } = await stream.waitEvent('stats', ({ totals }) => totals.sold === 2 && totals.blocked === 1);
    assert.deepEqual(last.totals, { available: 16, held: 1, sold: 2, blocked: 1, total: 20 });
    assert.equal(last.all, false);
    assert.deepEqual(last.blocks.map((one) => [one.section, one.subsection]), [['A', 2]], 'the one that changed');

    const occupancy = await event.occupancy();
    const told = toldBlocks(stream);
    assert.deepEqual(Object.fromEntries(told), Object.fromEntries(occupancy.blocks.map((one) => [one.block, countsOf(one)])));
    assert.deepEqual(countsOf(last.totals), countsOf(occupancy));
    const { name } = ok(await actor.get(event.path));
    const stored = server.select(`SELECT b.section, b.subsection, t.available, t.held, t.sold, t.blocked
      FROM subsection_stats AS t
      JOIN blocks AS b ON b.organization_id = t.organization_id AND b.event_id = t.event_id AND b.id = t.block_id
      JOIN events AS e ON e.organization_id = t.organization_id AND e.id = t.event_id
      WHERE e.name = '${name}' ORDER BY b.ordinal`);
    assert.deepEqual(stored.map(([section, subsection, ...counts]) => [`${section}-${subsection}`, counts.map(Number)]), [...told]);
    stream.close();
  });

  it('statistics come at most once a second, however much changes, and the last ones are right', async () => {
    const event = await organization.event({ layout: layoutOf(block('A', 1, [20]), block('A', 2, [20])) });
    const began = performance.now();
    const stream = await openEventStream(event, organization.buyer());
    const actor = organization.buyer();
    for (let index = 0; stream.of('stats').length < 4; index = (index + 1) % 39) {
      const hold = await event.hold(actor, event.seats[index]);
      ok(await actor.del(`/api/holds/${hold.hold_id}`));
    }
    const came = stream.of('stats').length;
    const seconds = (performance.now() - began) / 1000;
    assert.ok(came - 1 <= seconds, `${came} statistics in ${seconds} s`);
    assert.ok(stream.of('seats').length > came, 'seats did not wait for them');
    await event.hold(actor, event.seats[39]);
    // Not any moment of before in which one was held: the last one is of the other block.
    await stream.wait('the last word', () => stream.of('stats').pop().json.totals.held === 1 && toldBlocks(stream).get('A-2')?.[1] === 1);
    assert.deepEqual(Object.fromEntries(toldBlocks(stream)), { 'A-1': [20, 0, 0, 0], 'A-2': [19, 1, 0, 0] });
    stream.close();
  });

  it('a reader that resumes is told all blocks, and an id it had before is as good as ever', async () => {
    const event = await organization.event({ layout: layoutOf(block('A', 1, [4]), block('A', 2, [4])) });
    const reader = organization.buyer();
    const first = await openEventStream(event, reader);
    await event.hold(organization.buyer(), event.seats[0]);
    await first.waitEvent('stats', ({ totals }) => totals.held === 1);
    const last = first.lastId();
    first.close();
    await event.hold(organization.buyer(), event.seats[4]);
    const second = await openEventStream(event, reader, { lastEventId: last });
    await second.waitSeat(4, 'held');
    await second.wait('all blocks', () => second.of('stats').length > 0 && toldBlocks(second).get('A-2')?.[1] === 1);
    assert.equal(second.of('stats')[0].json.all, true);
    assert.equal(second.of('snapshot').length, 0);
    assert.deepEqual(second.changes().map(([index]) => index), [4]);
    second.close();
  });

  it('does not show other events', async () => {
    const [event, other] = [await organization.event(), await organization.event()];
    const stream = await openEventStream(event, organization.buyer());
    await other.hold(organization.buyer(), other.seats[1]);
    await event.hold(organization.buyer(), event.seats[2]);
    await stream.waitSeat(2, 'held');
    assert.deepEqual(stream.changes().map(([index]) => index), [2]);
    stream.close();
  });

  it('coalesces: many changes, few frames, none lost', async () => {
    const event = await organization.event({ layout: layoutOf(block('A', 1, [100])) });
    const stream = await openEventStream(event, organization.buyer());
    ok(await event.holdMany(organization.buyer(), event.seats.slice(0, 50)), 201);
    await stream.wait('fifty seats', () => new Set(stream.changes().map(([index]) => index)).size === 50);
    assert.ok(stream.of('seats').length <= 3, `${stream.of('seats').length} frames for one command`);
    const frames = stream.of('seats').length;
    await Promise.all(event.seats.slice(50).map((seat) => event.reserve(organization.buyer(), seat)));
    await stream.wait('a hundred seats', () => new Set(stream.changes().map(([index]) => index)).size === 100);
    assert.ok(stream.of('seats').length - frames < 50, `${stream.of('seats').length - frames} frames for fifty changes`);
    stream.close();
  });

  it('carries the caller\'s own news on the same stream, and to nobody else', async () => {
    const event = await organization.event();
    const [owner, other] = [organization.buyer(), organization.buyer()];
    const [mine, theirs] = [await openEventStream(event, owner), await openEventStream(event, other)];
    const hold = await event.hold(owner, event.seats[0]);
    await event.hold(owner, event.seats[1]);
    const checkout = ok(await event.checkout(owner), 201);
    await mine.waitEvent('checkout_updated', (data) => data.checkout_id === checkout.checkout_id && data.status === 'pending_payment');
    ok(await owner.del(`/api/holds/${hold.hold_id}`));
    const news = await mine.waitEvent('hold_released', (data) => data.hold_id === hold.hold_id);
    assert.equal(news.json.reason, 'user_cancelled');
    assert.equal(news.json.seat_id, hold.seat_id);
    ok(await owner.post(`/api/checkouts/${checkout.checkout_id}/complete`, { payment_token: 'tok_ok' }));
    await mine.waitEvent('checkout_updated', (data) => data.checkout_id === checkout.checkout_id && data.status === 'completed');
    await theirs.waitSeat(1, 'sold');
    assert.deepEqual(theirs.events.filter((entry) => !['snapshot', 'seats', 'stats'].includes(entry.event)), []);
    saysNothingOf(theirs.text, owner.user, hold.hold_id, checkout.checkout_id);
    mine.close();
    theirs.close();
  });

  it('the personal stream carries my news over all events and no seats', async () => {
    const [first, second] = [await organization.event(), await organization.event()];
    const owner = organization.buyer();
    const stream = await openStream(server, '/api/stream', { token: owner.bearer });
    assert.equal(stream.status, 200);
    const holds = [await first.hold(owner, first.seats[0]), await second.hold(owner, second.seats[0])];
    await first.hold(organization.buyer(), first.seats[1]);
    for (const hold of holds) {
      ok(await owner.del(`/api/holds/${hold.hold_id}`));
      await stream.waitEvent('hold_released', (data) => data.hold_id === hold.hold_id);
    }
    assert.equal(stream.of('seats').length, 0);
    stream.close();
  });

  it('an admin\'s release is told to the owner with its reason', async () => {
    const event = await organization.event();
    const owner = organization.buyer();
    const stream = await openStream(server, '/api/stream', { token: owner.bearer });
    const hold = await event.hold(owner, event.seats[0]);
    ok(await organization.admin.post('/api/admin/seats/release', { hold_ids: [hold.hold_id] }));
    const news = await stream.waitEvent('hold_released', (data) => data.hold_id === hold.hold_id);
    assert.equal(news.json.reason, 'admin_override');
    saysNothingOf(stream.text, organization.admin.user);
    stream.close();
  });

  it('hold_expiring comes thirty seconds before the end', async () => {
    const event = await organization.event({ policy: { hold_ttl_seconds: 32 } });
    const owner = organization.buyer();
    const stream = await openStream(server, '/api/stream', { token: owner.bearer });
    const hold = await event.hold(owner, event.seats[0]);
    const news = await stream.waitEvent('hold_expiring', (data) => data.hold_id === hold.hold_id);
    assert.equal(news.json.held_until, hold.held_until);
    const left = hold.held_until_unix - Date.now() / 1000;
    assert.ok(left <= 30.6 && left > 0, `told ${left} s before the end`);
    stream.close();
  });

  it('resumes by Last-Event-ID without loss and without a snapshot', async () => {
    const event = await organization.event({ layout: layoutOf(block('A', 1, [60])) });
    const reader = organization.buyer();
    const first = await openEventStream(event, reader);
    await event.hold(organization.buyer(), event.seats[0]);
    await first.waitSeat(0, 'held');
    const last = first.lastId();
    first.close();
    for (let index = 1; index <= 10; index++) {
      const actor = organization.buyer();
      const hold = await event.hold(actor, event.seats[index]);
      if (index % 2 === 0) ok(await actor.del(`/api/holds/${hold.hold_id}`));
    }
    const second = await openEventStream(event, reader, { lastEventId: last });
    await event.hold(organization.buyer(), event.seats[20]);
    await second.waitSeat(20, 'held');
    assert.equal(second.of('snapshot').length, 0);
    const state = new Map();
    for (const [index, status] of second.changes()) state.set(index, status);
    for (let index = 1; index <= 10; index++) assert.equal(state.get(index), index % 2 === 0 ? 'available' : 'held', `seat ${index}`);
    assert.ok(!state.has(0), 'what was seen before does not come again');
    second.close();
  });

  it('own news missed while away come again on resume', async () => {
    const event = await organization.event();
    const owner = organization.buyer();
    const first = await openEventStream(event, owner);
    const hold = await event.hold(owner, event.seats[0]);
    await first.waitSeat(0, 'held');
    const last = first.lastId();
    first.close();
    ok(await owner.del(`/api/holds/${hold.hold_id}`));
    const second = await openEventStream(event, owner, { lastEventId: last });
    await second.waitSeat(0, 'available');
    await second.waitEvent('hold_released', (data) => data.hold_id === hold.hold_id);
    second.close();
  });

  it('an unknown epoch, an id from the future and garbage get a new snapshot', async () => {
    const event = await organization.event();
    const reader = organization.buyer();
    const probe = await openEventStream(event, reader);
    const known = probe.lastId();
    probe.close();
    const epoch = epochOf(known);
    for (const lastEventId of ['deadbeef-5', `${epoch}-999999999`, 'garbage', '-', `${epoch}-`, `${epoch}--1`, 'x'.repeat(300), `${epoch}-99999999999999999999999`]) {
      const stream = await openEventStream(event, reader, { lastEventId });
      await stream.wait(`a first event after ${lastEventId.slice(0, 30)}`, () => stream.events.length > 0);
      assert.equal(stream.events[0].event, 'snapshot', lastEventId.slice(0, 30));
      stream.close();
    }
  });

  it('availability and frames fit together by their ids: the map is whole from frames after it alone', async () => {
    const event = await organization.event({ layout: layoutOf(block('A', 1, [60])) });
    const reader = organization.buyer();
    const first = await openEventStream(event, reader);
    const number = (id) => Number(id.slice(epochOf(id).length + 1));
    for (let round = 0; round < 5; round++) {
      const busy = Promise.all(event.seats.slice(round * 12, round * 12 + 12).map((seat) => event.reserve(organization.buyer(), seat)));
      if (round % 2) await busy;
      const { stream_id: at, states, count } = ok(await reader.get(`${event.path}/availability`));
      const bytes = Buffer.from(states, 'base64');
      const map = Array.from({ length: count }, (_, index) => ['available', 'held', 'sold', 'blocked'][(bytes[index >> 2] >> (2 * (index % 4))) & 3]);
      const resumed = await openEventStream(event, reader, { lastEventId: at });
      await busy;
      const expected = (await event.list()).map((seat) => seat.status);
      for (const stream of [first, resumed]) {
        await stream.wait(`the map of round ${round} to be whole`, () => {
          const now = [...map];
          for (const frame of stream.of('seats')) {
            if (number(frame.id) > number(at)) for (const [index, status] of frame.json.seats) now[index] = typeof status === 'number' ? STATUSES[status] : status;
          }
          return now.join() === expected.join();
        });
      }
      assert.equal(resumed.of('snapshot').length, 0, 'a known id resumes');
      resumed.close();
    }
    first.close();
  });

  it('needs the right to see the event', async () => {
    fails(await send(`${server.url}/api/stream`), 401, 'unauthorized');
    const buyer = organization.buyer();
    fails(await buyer.get(`/api/events/${uuid()}/stream`), 404, 'event_not_found');
    fails(await buyer.get('/api/events/x/stream'), 400, 'invalid_request');
    const elsewhere = await world.organization();
    const event = await organization.event();
    fails(await elsewhere.buyer().get(`${event.path}/stream`), 404, 'event_not_found');
  });

  it('two hundred readers all get every change', async () => {
    const event = await organization.event({ layout: layoutOf(block('A', 1, [30])) });
    const readers = await inParallel(Array.from({ length: 200 }), 50, () => openEventStream(event, organization.buyer()));
    for (const seat of event.seats) await event.hold(organization.buyer(), seat);
    await Promise.all(readers.map((stream) =>
      stream.wait('all thirty seats', () => new Set(stream.changes().map(([index]) => index)).size === 30)));
    assert.ok((await metric(server, 'holdfast_stream_readers')) >= 200);
    for (const stream of readers) stream.close();
    await waitFor('the readers to be gone', async () => (await metric(server, 'holdfast_stream_readers')) < 200);
  });

  it('a reader that leaves in the middle of a frame hurts nobody', async () => {
    const event = await organization.event({ layout: layoutOf(block('A', 1, [50])) });
    for (let round = 0; round < 10; round++) {
      const stream = await openEventStream(event, organization.buyer());
      const taken = event.reserve(organization.buyer(), event.seats[round]);
      stream.close();
      ok(await taken, 201);
    }
    await pause(50);
    const stream = await openEventStream(event, organization.buyer());
    assert.equal(stream.events[0].json.occupancy.held, 10);
    stream.close();
  });

  it('HEAD and POST on a stream are refused and close nothing', async () => {
    const event = await organization.event();
    const buyer = organization.buyer();
    const response = await buyer.post(`${event.path}/stream`);
    fails(response, 405, 'method_not_allowed');
    assert.match(response.headers.allow, /GET/);
  });
});

describe('stream under load', () => {
  it('a reader that does not read is dropped, and never holds up the others', async () => {
    // On a server of its own: this is a load that others would feel.
    const server = await start();
    const organization = await new World(server).organization();
    const event = await organization.event({ layout: layoutOf(block('A', 1, Array(100).fill(100))) });
    const owner = organization.buyer();
    const socket = connect(server.port, '127.0.0.1');
    socket.on('error', () => {});
    socket.write(`GET ${event.path}/stream HTTP/1.1\r\nhost: x\r\nauthorization: Bearer ${owner.bearer}\r\n\r\n`);
    await new Promise((resolve) => socket.once('data', resolve));
    socket.pause();
    const good = await openEventStream(event, organization.buyer());
    const dropped = await metric(server, 'holdfast_stream_dropped_total');
    // Megabytes of the reader's own news: more than the sockets' buffers and the ring of recent ones keep together.
    const groups = Array.from({ length: 200 }, (_, index) => event.seats.slice(index * 50, index * 50 + 50));
    await inParallel(groups, 16, async (seats) => ok(await event.holdMany(owner, seats), 201));
    await good.waitEvent('seats', (frame) => frame.occupancy.held === 10000);
    await inParallel(Array.from({ length: 10 }), 2, async (_, index) =>
      ok(await organization.admin.post('/api/admin/seats/release', { seat_ids: event.seats.slice(index * 1000, index * 1000 + 1000).map((seat) => seat.seat_id) })));
    await good.wait('all seats to be free', () => good.of('seats').pop().json.occupancy.held === 0);
    let closed = false;
    let bytes = 0;
    socket.on('data', (part) => (bytes += part.length));
    socket.on('close', () => (closed = true));
    socket.resume();
    await waitFor('the slow reader to be dropped', () => closed);
    assert.ok(bytes < 1000000, `${bytes} bytes were kept for it`);
    assert.ok((await metric(server, 'holdfast_stream_dropped_total')) >= dropped + 1);
    good.close();
    await server.stop();
  });
});

describe('stream over a restart', () => {
  it('a new start is a new epoch: the old id gets a snapshot', async () => {
    const server = await start();
    const organization = await new World(server).organization();
    const event = await organization.event();
    const reader = organization.buyer();
    const first = await openEventStream(event, reader);
    const last = first.lastId();
    const stopping = server.stop();
    await first.wait('the stream to end when the server stops', () => first.closed || undefined);
    await stopping;
    await server.launch();
    const second = await openEventStream(event, reader, { lastEventId: last });
    await second.wait('the first event', () => second.events.length > 0);
    assert.equal(second.events[0].event, 'snapshot');
    assert.notEqual(epochOf(second.events[0].id), epochOf(last));
    second.close();
    await server.stop();
  });
});
