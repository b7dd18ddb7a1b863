// SPDX-License-Identifier: Apache-2.0
// The web app's pure parts, without a browser: layout to arrays, what is where, which seats are left alone.
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';

import { previewOf, priceClasses, readLayout } from '../../web/src/lib/layout.js';
import { isPending, settle } from '../../web/src/lib/pending.js';
import { blockAt, seatAt, seatsIn, seatTowards } from '../../web/src/lib/map/pick.js';
import { placeOf, strandedBy } from '../../web/src/lib/seats.js';

const block = (section, subsection, rows, price = 1000) => ({ section, subsection, name: `${section}${subsection}`, price_cents: price, rows });
const hall = (...blocks) => readLayout(previewOf({ name: 'Hall', blocks }));
const placed = hall(block('A', 1, [{ label: 'a', seats: 5, x: 10, y: 20, dx: 1, dy: 0 }, { label: 'b', seats: ['7', '9'], x: 10, y: 21, dx: 0, dy: 2 }]));

describe('units', () => {
  test('seats stand where their rows say', () => {
    assert.equal(placed.count, 7);
    assert.deepEqual([placed.x[4], placed.y[4]], [14, 20]);
    assert.deepEqual([placed.x[6], placed.y[6]], [10, 23]);
    assert.deepEqual(placeOf(placed, 6), { block: 'A-1', blockName: 'A1', row: 'b', seat: '9', price: 1000 });
  });

  test('a layout without places is laid out without overlap', () => {
    const map = hall(block('A', 1, [{ label: '1', seats: 4 }, { label: '2', seats: 6 }]), block('A', 2, [{ label: '1', seats: 4 }]), block('B', 1, [{ label: '1', seats: 9 }]));
    const places = new Set(Array.from(map.x, (x, i) => `${x} ${map.y[i]}`));
    assert.equal(places.size, map.count);
    assert.ok(map.y[14] > map.y[9], 'section B stands behind section A');
  });

  test('a point finds its seat, its block, and nothing far away', () => {
    assert.equal(seatAt(placed, 12.2, 20.1), 2);
    assert.equal(seatAt(placed, 50, 50), -1);
    assert.equal(blockAt(placed, 11, 20.4), 0);
    assert.equal(blockAt(placed, 80, 20), -1);
    assert.deepEqual(seatsIn(placed, { left: 10.5, right: 13.5, top: 19, bottom: 20.5 }), [1, 2, 3]);
    assert.equal(seatTowards(placed, 2, 1, 0), 3);
    assert.equal(seatTowards(placed, 0, 0, 1), 5);
  });

  test('prices fall into at most six classes, cheapest first, none left out', () => {
    const prices = Array.from({ length: 13 }, (_, i) => ({ price: 1000 + 100 * i }));
    const classes = priceClasses(prices);
    assert.ok(classes.length <= 6);
    for (const { price } of prices) assert.equal(classes.filter((one) => price >= one.from && price <= one.to).length, 1);
    assert.deepEqual(priceClasses([{ price: 500 }]), [{ from: 500, to: 500 }]);
  });

  test('a seat between mine and a taken one is left alone; one with a free neighbour is not', () => {
    const row = hall(block('A', 1, [{ label: '1', seats: 8 }]));
    const states = Uint8Array.from([0, 0, 0, 0, 0, 2, 0, 0]);
    assert.deepEqual(strandedBy(row, states, new Set([1])), [0], 'the edge is like a taken seat');
    assert.deepEqual(strandedBy(row, states, new Set([3])), [4]);
    assert.deepEqual(strandedBy(row, states, new Set([2])), []);
    assert.deepEqual(strandedBy(row, states, new Set([3, 4])), []);
    assert.deepEqual(strandedBy(row, states, new Set()), []);
  });

  test('a command without an answer is asked for until it has one, and a refusal is thrown as ever', async () => {
    const pending = { data: { command_id: 'c', status: 'pending', location: '/api/commands/c' } };
    const waits = [];
    const wait = async (ms) => waits.push(ms);
    const answers = [{ status: 202, body: pending }, { status: 202, body: pending }, { status: 201, body: { data: { hold_id: 'h' } } }];
    const asked = [];
    const body = await settle(pending, async (location) => {
      asked.push(location);
      return answers.shift();
    }, wait);
    assert.deepEqual(body, { data: { hold_id: 'h' } });
    assert.deepEqual(asked, Array(3).fill('/api/commands/c'));
    assert.equal(waits.length, 3);
    await assert.rejects(settle(pending, async () => { throw new Error('seat_held_by_another_user'); }, wait), /seat_held/);
    assert.equal(await settle(pending, async () => ({ status: 202, body: pending }), wait), undefined, 'it does not ask for ever');
  });

  test('a payment whose outcome is not known yet is not a command to be asked for', () => {
    assert.ok(!isPending(202, { data: { checkout_id: 'x', status: 'processing' } }));
    assert.ok(!isPending(200, { data: { status: 'pending', location: '/x' } }));
    assert.ok(!isPending(202, null));
    assert.ok(isPending(202, { data: { command_id: 'c', status: 'pending', location: '/api/commands/c' } }));
  });
});
