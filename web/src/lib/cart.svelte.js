// SPDX-License-Identifier: Apache-2.0
// My seats at the event that is open. The server's list of holds is the truth; a tap shows at once and is corrected
// when the answer comes. Other tabs of the same person are told by a channel and read the list again; so do we after
// the line was away, and when the stream says that one of our holds has ended.
import { call, newKey } from './api.js';
import { serverNow } from './clock.svelte.js';
import { HELD, placeOf, strandedBy } from './seats.js';
import { explain } from './text.js';
import { toasts } from './toasts.svelte.js';

const LOST_KEPT_MAX = 10;

export class Cart {
  holds = $state.raw([]); // as the server tells them, this event's only
  asked = $state.raw(new Set()); // indexes on their way to being ours
  leaving = $state.raw(new Set()); // indexes on their way back
  lost = $state.raw([]); // {index, reason}: what ran out or was taken back, with a way back
  busy = $state(false);
  loaded = $state(false);
  #channel = null;
  #undo = [];
  #reading = null;
  #changeCount = 0; // of the list, by answers to what we asked for

  constructor(live) {
    this.live = live;
    this.#channel = 'BroadcastChannel' in globalThis ? new BroadcastChannel('holdfast.cart') : null;
    if (this.#channel) this.#channel.onmessage = () => this.read();
    const onVisible = () => document.visibilityState === 'visible' && this.read();
    document.addEventListener('visibilitychange', onVisible);
    this.#undo = [
      live.on('loaded', () => this.read()),
      live.on('resumed', () => this.read()),
      live.on('layout', ({ sameSeats }) => sameSeats || this.#forgetSeats()),
      live.on('news', (news) => this.#hear(news)),
      live.on('changes', (changes) => this.#notice(changes)),
      () => document.removeEventListener('visibilitychange', onVisible),
    ];
    this.read();
  }

  close() {
    this.closed = true;
    this.#channel?.close();
    for (const undo of this.#undo) undo();
  }

  /** Indexes of seats that are mine, or about to be. */
  get mine() {
    const map = this.live.map;
    const set = new Set(this.asked);
    if (map) for (const hold of this.holds) set.add(map.indexOf.get(hold.seat_id));
    for (const index of this.leaving) set.delete(index);
    set.delete(undefined);
    return set;
  }

  get total() {
    return this.holds.reduce((sum, hold) => sum + hold.price_cents, 0);
  }

  /** When the first of them ends, in the server's milliseconds; null without holds. */
  get endsAt() {
    return this.holds.length ? Math.min(...this.holds.map((hold) => hold.held_until_unix)) * 1000 : null;
  }

  get canExtend() {
    const max = this.live.event?.policy.hold_max_seconds ?? 0;
    return this.holds.some((hold) => Date.parse(hold.created_at) / 1000 + max > hold.held_until_unix + 1);
  }

  get stranded() {
    return this.live.map ? strandedBy(this.live.map, this.live.states, this.mine) : [];
  }

  /** Reads my holds again; calls that come while one is under way share one more. */
  async read() {
    if (this.closed || !this.live.map) return;
    if (this.#reading) {
      this.again = true;
      return this.#reading;
    }
    const changeCount = this.#changeCount;
    this.#reading = (async () => {
      try {
        const all = await call('GET', '/api/holds', { token: this.live.token });
        // A list that was asked for before the last change may not know of it.
        if (changeCount !== this.#changeCount) this.again = true;
        else this.#replace(all.filter((hold) => hold.event_id === this.live.eventId && hold.held_until_unix * 1000 > serverNow()));
        this.loaded = true;
      } catch {
        /* the line's banner says it */
      }
      this.#reading = null;
    })();
    await this.#reading;
    if (this.again) {
      this.again = false;
      await this.read();
    }
  }

  #replace(holds) {
    this.holds = [...holds].sort((a, b) => a.created_at.localeCompare(b.created_at) || a.seat_id.localeCompare(b.seat_id));
    const taken = new Set(this.holds.map((hold) => this.live.map.indexOf.get(hold.seat_id)));
    this.lost = this.lost.filter((one) => !taken.has(one.index));
  }

  /** Another hall: what was asked for or lost there is nowhere now. */
  #forgetSeats() {
    this.asked = new Set();
    this.leaving = new Set();
    this.lost = [];
    this.holds = [];
  }

  #tell() {
    this.#channel?.postMessage('changed');
  }

  /** A tap: take it, or give it back. */
  toggle(index) {
    if (this.asked.has(index) || this.leaving.has(index)) return;
    const hold = this.holds.find((one) => this.live.map.indexOf.get(one.seat_id) === index);
    if (hold) this.release([hold]);
    else this.take(index);
  }

  async take(index) {
    const { map, states, eventId, token } = this.live;
    if (states[index] !== 0 && states[index] !== HELD) {
      toasts.say(explain({ code: 'seat_not_available', details: { current_status: states[index] === 2 ? 'sold' : 'blocked' } }), 'warn');
      return;
    }
    this.asked = new Set(this.asked).add(index);
    try {
      const hold = await call('POST', `/api/events/${eventId}/seats/${map.seatIds[index]}/reserve`, { token, key: newKey(), body: { source: 'web' } });
      this.#changeCount++;
      this.#replace([...this.holds.filter((one) => one.hold_id !== hold.hold_id), hold]);
      this.#tell();
    } catch (error) {
      toasts.say(explain(error, placeOf(map, index)), 'warn');
      if (error.status === 401) this.live.failure = error;
    }
    const asked = new Set(this.asked);
    asked.delete(index);
    this.asked = asked;
  }

  /** Several seats at once, all or none. True when they are ours. */
  async takeAll(indexes) {
    if (indexes.length === 1) {
      await this.take(indexes[0]);
      return this.mine.has(indexes[0]);
    }
    const { map, eventId, token } = this.live;
    return this.#holding({ seat_ids: indexes.map((index) => map.seatIds[index]) }, eventId, token);
  }

  /** The best that is free. Gives the holds and their explanation, or null. */
  async takeBest(wish) {
    return this.#holding(wish, this.live.eventId, this.live.token);
  }

  async #holding(body, eventId, token) {
    this.busy = true;
    try {
      const answer = await call('POST', `/api/events/${eventId}/holds`, { token, key: newKey(), body });
      this.#changeCount++;
      const ids = new Set(answer.holds.map((hold) => hold.hold_id));
      this.#replace([...this.holds.filter((one) => !ids.has(one.hold_id)), ...answer.holds]);
      this.#tell();
      return answer;
    } catch (error) {
      toasts.say(explain(error), 'warn');
      return null;
    } finally {
      this.busy = false;
    }
  }

  async release(holds) {
    const indexes = holds.map((hold) => this.live.map.indexOf.get(hold.seat_id));
    this.leaving = new Set([...this.leaving, ...indexes]);
    const results = await Promise.allSettled(holds.map((hold) => call('DELETE', `/api/holds/${hold.hold_id}`, { token: this.live.token, key: newKey() })));
    this.#changeCount++;
    const gone = new Set(holds.filter((_, i) => results[i].status === 'fulfilled' || results[i].reason.status === 404).map((hold) => hold.hold_id));
    const failed = results.find((result) => result.status === 'rejected' && result.reason.status !== 404);
    if (failed) toasts.say(explain(failed.reason), 'warn');
    this.holds = this.holds.filter((hold) => !gone.has(hold.hold_id));
    this.leaving = new Set([...this.leaving].filter((index) => !indexes.includes(index)));
    this.#tell();
  }

  async extend() {
    this.busy = true;
    const results = await Promise.allSettled(this.holds.map((hold) => call('POST', `/api/holds/${hold.hold_id}/extend`, { token: this.live.token, key: newKey() })));
    this.#changeCount++;
    const done = new Map(results.filter((one) => one.status === 'fulfilled').map((one) => [one.value.hold_id, one.value]));
    this.holds = this.holds.map((hold) => done.get(hold.hold_id) ?? hold);
    const failed = results.find((one) => one.status === 'rejected');
    if (failed && done.size === 0) toasts.say(explain(failed.reason), 'warn');
    this.busy = false;
    this.#tell();
  }

  /** Called by the countdown: what has ended by the server's clock is no longer ours. */
  sweep(now) {
    const over = this.holds.filter((hold) => hold.held_until_unix * 1000 <= now);
    if (over.length > 0) this.#lose(over, 'ttl_expired');
  }

  #lose(holds, reason) {
    const ids = new Set(holds.map((hold) => hold.hold_id));
    const rows = holds.map((hold) => ({ index: this.live.map.indexOf.get(hold.seat_id), reason }));
    this.holds = this.holds.filter((hold) => !ids.has(hold.hold_id));
    this.lost = [...this.lost, ...rows].slice(-LOST_KEPT_MAX);
  }

  forgetLost() {
    this.lost = [];
  }

  #hear(news) {
    if (news.name === 'hold_released') {
      const hold = this.holds.find((one) => one.hold_id === news.hold_id);
      const index = hold && this.live.map.indexOf.get(hold.seat_id);
      if (hold && news.reason !== 'user_cancelled' && !this.leaving.has(index)) this.#lose([hold], news.reason);
    }
    this.read();
  }

  /** A seat of mine that others see as anything but held: our list is old. */
  #notice(changes) {
    const { map } = this.live;
    const mine = new Set(this.holds.map((hold) => map.indexOf.get(hold.seat_id)));
    if (changes.some((change) => change.after !== HELD && mine.has(change.index))) this.read();
  }
}
