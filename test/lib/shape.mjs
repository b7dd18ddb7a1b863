// SPDX-License-Identifier: Apache-2.0
// What the contract says about the form of things, as assertions: ids, times, and the exact fields of the objects that
// callers build on.

import assert from 'node:assert/strict';

export const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/;
export const UUID7 = /^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/;
export const TIME = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$/;
export const STATUSES = ['available', 'held', 'sold', 'blocked'];

export const unix = (iso) => Date.parse(iso) / 1000;

/** Exactly these keys, no more and no fewer. */
export function exactKeys(object, keys) {
  assert.deepEqual(Object.keys(object).sort(), [...keys].sort());
}

/** At least these keys. */
export function hasKeys(object, keys) {
  for (const key of keys) assert.ok(key in object, `${key} is missing in ${JSON.stringify(object).slice(0, 400)}`);
}

export const HOLD_FIELDS = [
  'hold_id',
  'seat_id',
  'event_id',
  'block_name',
  'row',
  'seat_number',
  'status',
  'held_until',
  'held_until_unix',
  'expires_in_seconds',
  'message',
];

/** A hold as its owner sees it: the fields of the Reserve Seat workflow's last step, and nobody's identity. */
export function isHold(hold, { seat, event, ttl } = {}) {
  hasKeys(hold, HOLD_FIELDS);
  for (const key of ['user_id', 'organization_id', 'version']) assert.ok(!(key in hold), `${key} stays inside`);
  assert.match(hold.hold_id, UUID7);
  assert.match(hold.seat_id, UUID);
  assert.match(hold.event_id, UUID);
  if (seat) {
    assert.equal(hold.seat_id, seat.seat_id);
    assert.equal(hold.row, seat.row);
    assert.equal(hold.seat_number, seat.seat_number);
  }
  if (event) assert.equal(hold.event_id, event);
  assert.equal(typeof hold.block_name, 'string');
  assert.equal(typeof hold.row, 'string');
  assert.equal(typeof hold.seat_number, 'string');
  assert.equal(hold.status, 'held');
  assert.match(hold.held_until, TIME);
  assert.equal(hold.held_until_unix, unix(hold.held_until), 'both forms of held_until agree');
  assert.ok(Number.isInteger(hold.expires_in_seconds) && hold.expires_in_seconds >= 0);
  if (ttl !== undefined) {
    assert.ok(hold.expires_in_seconds <= ttl && hold.expires_in_seconds >= ttl - 2, `expires_in_seconds ${hold.expires_in_seconds}, ttl ${ttl}`);
  }
  assert.ok(hold.message.length > 0);
}

export const CHECKOUT_FIELDS = ['checkout_id', 'event_id', 'status', 'expires_at', 'currency', 'total_cents', 'seats', 'tickets'];
export const TICKET_FIELDS = ['ticket_id', 'seat_id', 'block', 'row', 'seat_number', 'price_cents', 'code'];

export function isCheckout(checkout, { status, seats, total, event } = {}) {
  hasKeys(checkout, CHECKOUT_FIELDS);
  assert.match(checkout.checkout_id, UUID7);
  assert.match(checkout.event_id, UUID);
  assert.match(checkout.currency, /^[A-Z]{3}$/);
  assert.ok(Number.isInteger(checkout.total_cents) && checkout.total_cents >= 0);
  assert.ok(Array.isArray(checkout.seats) && Array.isArray(checkout.tickets));
  if (status) assert.equal(checkout.status, status);
  if (status === 'pending_payment') assert.match(checkout.expires_at, TIME);
  if (seats) assert.deepEqual(checkout.seats.map((seat) => seat.seat_id).sort(), [...seats].sort());
  if (total !== undefined) assert.equal(checkout.total_cents, total);
  if (event) assert.equal(checkout.event_id, event);
  if (checkout.status !== 'completed' && checkout.status !== 'refunded') assert.deepEqual(checkout.tickets, []);
}

export function isTicket(ticket) {
  hasKeys(ticket, TICKET_FIELDS);
  assert.match(ticket.ticket_id, UUID7);
  assert.match(ticket.seat_id, UUID);
  assert.match(ticket.block, /^[A-Z]{1,3}-\d+$/);
  assert.equal(typeof ticket.row, 'string');
  assert.equal(typeof ticket.seat_number, 'string');
  assert.ok(Number.isInteger(ticket.price_cents));
  assert.ok(ticket.code.length >= 20, 'a ticket code is long enough not to be guessed');
}

export const OCCUPANCY_COUNTS = ['available', 'held', 'sold', 'blocked', 'total'];
export const OCCUPANCY_FIELDS = [...OCCUPANCY_COUNTS, 'percent_available', 'percent_held', 'percent_sold'];

export function isOccupancy(occupancy) {
  hasKeys(occupancy, OCCUPANCY_FIELDS);
  for (const key of OCCUPANCY_COUNTS) assert.ok(Number.isInteger(occupancy[key]) && occupancy[key] >= 0, `${key}: ${occupancy[key]}`);
  const { available, held, sold, blocked, total } = occupancy;
  assert.equal(available + held + sold + blocked, total, 'the four states add up to the total');
  for (const [key, count] of [['percent_available', available], ['percent_held', held], ['percent_sold', sold]]) {
    const expected = total === 0 ? 0 : (count / total) * 100;
    assert.ok(Math.abs(occupancy[key] - expected) <= 0.06, `${key} is ${occupancy[key]}, ${expected} expected`);
  }
}

/** Fails if any of the given strings stands anywhere in the text. */
export function saysNothingOf(text, ...secrets) {
  for (const secret of secrets.flat()) assert.ok(!text.includes(secret), `${secret} leaked in ${text.slice(0, 600)}`);
}
