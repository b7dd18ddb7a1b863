// SPDX-License-Identifier: Apache-2.0
// Best available: adjacent, nearest the front, nearest the centre, stranding nobody; and the rule against single gaps.

import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';

import { fails, ok } from '../lib/client.mjs';
import { start } from '../lib/server.mjs';
import { exactKeys, isHold } from '../lib/shape.mjs';
import { block, layoutOf, World } from '../lib/world.mjs';

describe('best available', { concurrency: 12 }, () => {
  let server;
  let organization;

  before(async () => {
    server = await start();
    organization = await new World(server).organization();
  });
  after(() => server.stop());

  const hall = (rows, more = {}) => organization.event({ layout: layoutOf(block('A', 1, rows)), ...more });
  /** The chosen seats as "row/number", in layout order. */
  const chosen = (event, data) => {
    const ids = new Set(data.holds.map((hold) => hold.seat_id));
    return event.seats.filter((seat) => ids.has(seat.seat_id)).map((seat) => `${seat.block}:${seat.row}/${seat.seat_number}`);
  };
  const take = async (event, ...indexes) => {
    const buyer = organization.buyer();
    for (const index of indexes) await event.hold(buyer, event.seats[index]);
  };

  it('answers 201 with the holds and an explanation', async () => {
    const event = await hall([9, 9]);
    const data = ok(await event.best(organization.buyer(), { quantity: 3 }), 201);
    exactKeys(data, ['holds', 'explanation']);
    assert.equal(data.holds.length, 3);
    for (const hold of data.holds) isHold(hold, { event: event.id });
    exactKeys(data.explanation, ['adjacent', 'split', 'stranded', 'distance']);
    assert.equal(data.explanation.adjacent, true);
    assert.equal((await event.occupancy()).held, 3);
  });

  it('takes the centre of the front row', async () => {
    const event = await hall([9, 9]);
    assert.deepEqual(chosen(event, ok(await event.best(organization.buyer(), { quantity: 3 }), 201)), ['A-1:1/4', 'A-1:1/5', 'A-1:1/6']);
  });

  it('one seat is the centre seat', async () => {
    const event = await hall([5]);
    assert.deepEqual(chosen(event, ok(await event.best(organization.buyer(), { quantity: 1 }), 201)), ['A-1:1/3']);
  });

  it('goes on with the next row when the front one has no run left', async () => {
    const event = await hall([4, 6]);
    await take(event, 1, 3);
    assert.deepEqual(chosen(event, ok(await event.best(organization.buyer(), { quantity: 2 }), 201)), ['A-1:2/3', 'A-1:2/4']);
  });

  it('leaves no single seat stranded where another place in that row would not', async () => {
    // Five free seats: two in the middle (2,3 or 3,4) would leave one alone; 1,2 or 4,5 would not.
    const event = await hall([5]);
    const data = ok(await event.best(organization.buyer(), { quantity: 2 }), 201);
    const numbers = chosen(event, data);
    assert.ok([['A-1:1/1', 'A-1:1/2'], ['A-1:1/4', 'A-1:1/5']].some((pair) => pair.join() === numbers.join()), numbers.join());
    assert.deepEqual([data.explanation.stranded].flat().filter((entry) => entry && entry !== 0), []);
  });

  it('keeps to the named block, section, and layout order over them', async () => {
    const event = await organization.event({ layout: layoutOf(block('A', 1, [2]), block('A', 2, [3]), block('B', 1, [6])) });
    const buyer = organization.buyer();
    const at = async (body) => chosen(event, ok(await event.best(buyer, body), 201)).map((label) => label.split(':')[0]);
    assert.deepEqual(await at({ quantity: 2, section: 'B', subsection: 1 }), ['B-1', 'B-1']);
    assert.deepEqual(await at({ quantity: 3, section: 'A' }), ['A-2', 'A-2', 'A-2']);
    assert.deepEqual(await at({ quantity: 2 }), ['A-1', 'A-1']);
    assert.deepEqual(await at({ quantity: 2 }), ['B-1', 'B-1']);
    fails(await event.best(buyer, { quantity: 1, section: 'A' }), 409, 'not_enough_seats');
    fails(await event.best(buyer, { quantity: 1, section: 'A', subsection: 1 }), 409, 'not_enough_seats');
  });

  it('never crosses rows or blocks when seats must be adjacent', async () => {
    const event = await organization.event({ layout: layoutOf(block('A', 1, [2, 2]), block('B', 1, [2])) });
    fails(await event.best(organization.buyer(), { quantity: 3 }), 409, 'not_enough_seats');
    assert.equal((await event.occupancy()).held, 0, 'not_enough_seats holds nothing');
  });

  it('combines the largest runs when they need not be adjacent', async () => {
    const event = await hall([3, 4]);
    await take(event, 1);
    const data = ok(await event.best(organization.buyer(), { quantity: 5, adjacent: false }), 201);
    assert.equal(data.holds.length, 5);
    assert.equal(data.explanation.adjacent, false);
    const numbers = chosen(event, data);
    for (const number of ['A-1:2/1', 'A-1:2/2', 'A-1:2/3', 'A-1:2/4']) assert.ok(numbers.includes(number), `the largest run is used whole: ${numbers}`);
    fails(await event.best(organization.buyer(), { quantity: 2, adjacent: false }), 409, 'not_enough_seats');
    assert.equal((await event.occupancy()).held, 6);
  });

  it('prefers adjacent seats even when they need not be', async () => {
    const event = await hall([6]);
    const data = ok(await event.best(organization.buyer(), { quantity: 3, adjacent: false }), 201);
    assert.equal(data.explanation.adjacent, true);
  });

  it('never picks blocked, held or sold seats', async () => {
    const event = await hall([7]);
    ok(await organization.admin.post(`${event.adminPath}/seats/block`, { seat_ids: [event.seats[3].seat_id] }));
    await take(event, 4);
    assert.deepEqual(chosen(event, ok(await event.best(organization.buyer(), { quantity: 3 }), 201)), ['A-1:1/1', 'A-1:1/2', 'A-1:1/3']);
    fails(await event.best(organization.buyer(), { quantity: 3 }), 409, 'not_enough_seats');
  });

  it('respects a block\'s capacity', async () => {
    const event = await organization.event({ layout: layoutOf(block('A', 1, [6], { capacity: 3 })) });
    ok(await event.best(organization.buyer(), { quantity: 2 }), 201);
    const refused = await event.best(organization.buyer(), { quantity: 2 });
    assert.ok(['block_at_capacity', 'not_enough_seats'].includes(refused.body?.error?.code) && refused.status === 409, refused.text);
    ok(await event.best(organization.buyer(), { quantity: 1 }), 201);
    assert.equal((await event.occupancy()).held, 3);
  });

  it('refuses wrong shapes', async () => {
    const event = await hall([60]);
    const buyer = organization.buyer();
    for (const body of [{ quantity: 0 }, { quantity: -1 }, { quantity: 51 }, { quantity: 1.5 }, { quantity: '2' }, { quantity: null }, { quantity: true },
      { quantity: 1e99 }, { quantity: 2, adjacent: 'yes' }, { quantity: 2, section: 'a' }, { quantity: 2, section: 'ABCD' }, { quantity: 2, section: 5 },
      { quantity: 2, subsection: 1 }, { quantity: 2, section: 'A', subsection: 0 }, { quantity: 2, section: 'A', subsection: '1' }]) {
      fails(await event.best(buyer, body), 400, 'invalid_request');
    }
    assert.equal((await event.occupancy()).held, 0);
    assert.equal(ok(await event.best(buyer, { quantity: 50 }), 201).holds.length, 50);
  });

  it('many at the same time never share a seat, always get neighbours, and fill the hall', async () => {
    const event = await organization.event({ layout: layoutOf(block('A', 1, Array(10).fill(10))) });
    const answers = await Promise.all(Array.from({ length: 60 }, () => event.best(organization.buyer(), { quantity: 2 })));
    const granted = answers.filter((answer) => answer.status === 201).map((answer) => answer.body.data);
    for (const answer of answers) if (answer.status !== 201) fails(answer, 409, 'not_enough_seats');
    const index = new Map(event.seats.map((seat, place) => [seat.seat_id, { ...seat, place }]));
    const seen = new Set();
    for (const { holds } of granted) {
      const [first, second] = holds.map((hold) => index.get(hold.seat_id));
      assert.equal(first.row, second.row, 'in one row');
      assert.equal(Math.abs(first.place - second.place), 1, 'side by side');
      for (const { seat_id: id } of [first, second]) {
        assert.ok(!seen.has(id), 'given once');
        seen.add(id);
      }
    }
    assert.equal(granted.length, 50, 'pairs in rows of ten strand nobody, so all hundred seats go');
  });

  describe('with forbid_single_seat_gaps', { concurrency: 12 }, () => {
    const strict = (rows) => hall(rows, { policy: { forbid_single_seat_gaps: true } });

    it('several named seats that would strand one are refused, naming it', async () => {
      const event = await strict([5]);
      const buyer = organization.buyer();
      const { details } = fails(await event.holdMany(buyer, [event.seats[1], event.seats[2]]), 409, 'would_leave_single_seat');
      const stranded = details.seats.map((seat) => seat.seat_id ?? seat);
      assert.deepEqual(stranded, [event.seats[0].seat_id]);
      assert.equal((await event.occupancy()).held, 0);
      ok(await event.holdMany(buyer, [event.seats[0], event.seats[1]]), 201);
    });

    it('a stranding that no other place in the run avoids is allowed', async () => {
      const event = await strict([3]);
      ok(await event.holdMany(organization.buyer(), event.seats.slice(0, 2)), 201);
    });

    it('a single reserve is never refused, the checkout that would strand is', async () => {
      const event = await strict([5]);
      const buyer = organization.buyer();
      const holds = [await event.hold(buyer, event.seats[1]), await event.hold(buyer, event.seats[2])];
      const { details } = fails(await event.checkout(buyer), 409, 'would_leave_single_seat');
      assert.deepEqual(details.seats.map((seat) => seat.seat_id ?? seat), [event.seats[0].seat_id]);
      assert.equal(ok(await buyer.get(`/api/holds/${holds[0].hold_id}`)).held_until, holds[0].held_until, 'nothing was extended');
      await event.hold(buyer, event.seats[0]);
      ok(await event.checkout(buyer), 201);
    });

    it('seats next to a neighbour\'s seat strand nobody', async () => {
      const event = await strict([6]);
      await event.hold(organization.buyer(), event.seats[0]);
      fails(await event.holdMany(organization.buyer(), [event.seats[2], event.seats[3]]), 409, 'would_leave_single_seat');
      ok(await event.holdMany(organization.buyer(), [event.seats[1], event.seats[2]]), 201);
    });

    it('the rule is off by default', async () => {
      const event = await hall([5]);
      const buyer = organization.buyer();
      ok(await event.holdMany(buyer, [event.seats[1], event.seats[2]]), 201);
      ok(await event.checkout(buyer), 201);
    });
  });
});
