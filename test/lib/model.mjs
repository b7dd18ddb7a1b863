// SPDX-License-Identifier: Apache-2.0
// A plain model of the contract for one event whose holds do not run out: a few maps and the rules in the order in which
// the contract states them. It is meant to be read beside the contract and to be obviously right; it shares nothing with
// the server. Every method answers what the server must answer: {status, code?} and, on success, the ids involved.

export class Model {
  /** `seats`: the seat list of the event; `blocks`: {block: {price, capacity}}. */
  constructor(seats, { maxSeats = 0, blocks }) {
    this.maxSeats = maxSeats;
    this.blocks = blocks;
    this.seats = new Map(seats.map((seat) => [seat.seat_id, { block: seat.block, status: 'available', hold: undefined }]));
    this.holds = new Map();
    this.checkouts = new Map();
  }

  activeHolds(user) {
    return [...this.holds.values()].filter((hold) => hold.active && hold.user === user);
  }

  taken(block) {
    return [...this.seats.values()].filter((seat) => seat.block === block && (seat.status === 'held' || seat.status === 'sold')).length;
  }

  owner(seat) {
    return seat.hold === undefined ? undefined : this.holds.get(seat.hold).user;
  }

  /** Why this user cannot take these seats, or undefined. Seats that are theirs already must be left out. */
  refusal(user, seatIds) {
    for (const id of seatIds) {
      const { status } = this.seats.get(id);
      if (status === 'held') return { status: 409, code: 'seat_held_by_another_user' };
      if (status !== 'available') return { status: 409, code: 'seat_not_available' };
    }
    const reasons = [];
    if (this.maxSeats > 0 && this.activeHolds(user).length + seatIds.length > this.maxSeats) reasons.push('hold_limit_reached');
    const wanted = new Map();
    for (const id of seatIds) wanted.set(this.seats.get(id).block, (wanted.get(this.seats.get(id).block) ?? 0) + 1);
    for (const [block, count] of wanted) {
      if (this.taken(block) + count > this.blocks[block].capacity) reasons.push('block_at_capacity');
    }
    // Both are limits; the contract does not order them among themselves.
    return reasons.length > 0 ? { status: 409, code: reasons } : undefined;
  }

  reserve(user, seatId) {
    const seat = this.seats.get(seatId);
    if (seat === undefined) return { status: 404, code: 'seat_not_found' };
    if (seat.status === 'held' && this.owner(seat) === user) return { status: 200, holds: [seat.hold] };
    return this.refusal(user, [seatId]) ?? { status: 201, seats: [seatId] };
  }

  holdMany(user, seatIds) {
    const fresh = seatIds.filter((id) => !(this.seats.get(id).status === 'held' && this.owner(this.seats.get(id)) === user));
    if (fresh.length === 0) return { status: 200, holds: seatIds.map((id) => this.seats.get(id).hold) };
    return this.refusal(user, fresh) ?? { status: 201, seats: fresh };
  }

  /** The server granted a hold: from now on it exists. */
  granted(user, seatId, holdId) {
    const seat = this.seats.get(seatId);
    seat.status = 'held';
    seat.hold = holdId;
    this.holds.set(holdId, { id: holdId, user, seat: seatId, price: this.blocks[seat.block].price, active: true, checkout: undefined });
  }

  endHold(hold) {
    hold.active = false;
    const seat = this.seats.get(hold.seat);
    seat.status = 'available';
    seat.hold = undefined;
    this.leaveCheckout(hold, 'cancelled');
  }

  leaveCheckout(hold, whenEmpty) {
    const checkout = this.checkouts.get(hold.checkout);
    hold.checkout = undefined;
    if (checkout === undefined || checkout.status !== 'pending_payment') return;
    checkout.holds.delete(hold.id);
    if (checkout.holds.size === 0) checkout.status = whenEmpty;
  }

  release(user, holdId) {
    const hold = this.holds.get(holdId);
    if (hold === undefined) return { status: 404, code: 'hold_not_found' };
    if (hold.user !== user) return { status: 403, code: 'not_hold_owner' };
    // A hold that became a ticket is not released; whether a repeated release is told so is not this model's business.
    if (!hold.active) return { status: 200, converted: hold.converted === true };
    this.endHold(hold);
    return { status: 200 };
  }

  startCheckout(user, holdIds) {
    const mine = holdIds ?? this.activeHolds(user).map((hold) => hold.id);
    if (mine.length === 0) return { status: 400, code: 'no_active_holds' };
    const holds = mine.map((id) => this.holds.get(id));
    if (holds.some((hold) => hold.user !== user)) return { status: 403, code: 'not_hold_owner' };
    const open = this.checkouts.get(holds[0].checkout);
    if (open && open.status === 'pending_payment' && open.holds.size === mine.length && mine.every((id) => open.holds.has(id))) {
      return { status: 200, checkout: open.id, total: this.total(open) };
    }
    return { status: 201, holds: mine, total: holds.reduce((sum, hold) => sum + hold.price, 0) };
  }

  total(checkout) {
    return [...checkout.holds].reduce((sum, id) => sum + this.holds.get(id).price, 0);
  }

  started(user, checkoutId, holdIds) {
    for (const id of holdIds) this.leaveCheckout(this.holds.get(id), 'cancelled');
    for (const id of holdIds) this.holds.get(id).checkout = checkoutId;
    this.checkouts.set(checkoutId, { id: checkoutId, user, status: 'pending_payment', holds: new Set(holdIds) });
  }

  complete(user, checkoutId, pays) {
    const checkout = this.checkouts.get(checkoutId);
    if (checkout.status === 'completed') return { status: 200, tickets: checkout.holds.size };
    if (checkout.status !== 'pending_payment') return { status: 409, code: 'checkout_not_payable' };
    if (!pays) {
      checkout.status = 'failed';
      for (const id of checkout.holds) this.endHold(this.holds.get(id));
      return { status: 402, code: 'payment_failed' };
    }
    checkout.status = 'completed';
    for (const id of checkout.holds) {
      const hold = this.holds.get(id);
      hold.active = false;
      hold.converted = true;
      const seat = this.seats.get(hold.seat);
      seat.status = 'sold';
      seat.hold = undefined;
    }
    return { status: 200, tickets: checkout.holds.size };
  }

  cancel(user, checkoutId) {
    const checkout = this.checkouts.get(checkoutId);
    if (checkout.status === 'cancelled') return { status: 200 };
    if (checkout.status !== 'pending_payment') return { status: 409, code: 'checkout_not_cancellable' };
    const holds = [...checkout.holds];
    checkout.status = 'cancelled';
    for (const id of holds) this.endHold(this.holds.get(id));
    return { status: 200, released: holds.length };
  }

  /** Blocks what can be blocked; an error only if nothing could be. */
  block(seatIds) {
    let done = 0;
    for (const id of seatIds) {
      const seat = this.seats.get(id);
      if (seat.status === 'sold') continue;
      if (seat.status === 'held') this.endHold(this.holds.get(seat.hold));
      seat.status = 'blocked';
      done++;
    }
    return done > 0 ? { status: 200 } : { status: 409, code: 'seat_not_available' };
  }

  unblock(seatIds) {
    let done = 0;
    for (const id of seatIds) {
      const seat = this.seats.get(id);
      if (seat.status === 'held' || seat.status === 'sold') continue;
      seat.status = 'available';
      done++;
    }
    return done > 0 ? { status: 200 } : { status: 409, code: 'seat_not_available' };
  }

  adminRelease(seatIds) {
    let released = 0;
    for (const id of seatIds) {
      const seat = this.seats.get(id);
      if (seat.status !== 'held') continue;
      this.endHold(this.holds.get(seat.hold));
      released++;
    }
    return released;
  }

  states() {
    return [...this.seats.values()].map((seat) => seat.status);
  }
}

/** A small seeded generator (mulberry32), so that a walk can be walked again. */
export function random(seed) {
  let state = seed >>> 0;
  const next = () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let t = state;
    t = Math.imul(t ^ (t >>> 15), t | 1);
    t ^= t + Math.imul(t ^ (t >>> 7), t | 61);
    return ((t ^ (t >>> 14)) >>> 0) / 4294967296;
  };
  return {
    below: (limit) => Math.floor(next() * limit),
    chance: (probability) => next() < probability,
    pick: (list) => list[Math.floor(next() * list.length)],
  };
}
