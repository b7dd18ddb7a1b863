// SPDX-License-Identifier: Apache-2.0
// One event, live: the only place that knows the state of its seats. It is filled from the layout and availability,
// and kept true by the stream's frames; everything that draws or counts reads from here.
//
//  1. states[i] is seat i's state, in layout order. Nobody else writes it.
//  2. A frame that is not newer than the availability it was loaded with is skipped, so nothing counts twice.
//  3. A snapshot on the stream means that frames may have been missed, or that the event itself, its layout or its prices
//     have changed: the event and availability are read again, and the layout if its ETag is not the one we have.
//  4. Counts follow states seat by seat; people see them at most once a frame of the screen.
import { ApiError, call, send } from './api.js';
import { readLayout } from './layout.js';
import { STATES } from './seats.js';
import { Follower } from './stream.js';

const LAYOUT_TRIES_MAX = 5; // a layout that changes faster than it can be read is tried again with the next snapshot

const frameNumber = (id) => Number(String(id).split('-').pop());

function unpack(answer) {
  const bytes = atob(answer.states);
  const states = new Uint8Array(answer.count);
  for (let i = 0; i < answer.count; i++) states[i] = (bytes.charCodeAt(i >> 2) >> (2 * (i & 3))) & 3;
  return states;
}

export class LiveEvent {
  event = $state.raw(null);
  map = $state.raw(null);
  connection = $state('connecting'); // connecting, live, away
  resumed = $state(0); // how often the line came back
  failure = $state.raw(null); // why there is nothing to see
  counts = $state.raw([0, 0, 0, 0]);
  version = $state(0); // goes up with every change of states that was counted

  states = new Uint8Array(0);
  blockCounts = []; // per block, four numbers
  #counts = [0, 0, 0, 0];
  #loaded = 0;
  #etag = null; // of the layout that map was made from
  #isFresh = false; // the event was read a moment ago
  #listeners = new Map(); // name → Set
  #follower = null;
  #wasAway = false;
  #drawn = 0;

  constructor(eventId, token) {
    this.eventId = eventId;
    this.token = token;
    this.#open();
  }

  /**
   * Hears 'changes' ({index, before, after, reason}[]), 'loaded', 'layout' ({sameSeats}: other prices, or another hall),
   * 'news' (the caller's own), 'resumed', 'pulse' (any sign of life).
   */
  on(name, listener) {
    if (!this.#listeners.has(name)) this.#listeners.set(name, new Set());
    this.#listeners.get(name).add(listener);
    return () => this.#listeners.get(name)?.delete(listener);
  }

  #emit(name, value) {
    for (const listener of this.#listeners.get(name) ?? []) listener(value);
  }

  get #path() {
    return `/api/events/${this.eventId}`;
  }

  async #readEvent() {
    const event = await call('GET', this.#path, { token: this.token });
    if (!this.closed) this.event = event;
  }

  async #readLayout() {
    const response = await send('GET', `${this.#path}/layout`, { token: this.token });
    const { data } = await response.json();
    if (this.closed) return;
    const before = this.map;
    const map = readLayout(data);
    const sameSeats = before?.count === map.count && before.seatIds[0] === map.seatIds[0];
    this.#etag = response.headers.get('ETag');
    if (!sameSeats) {
      this.states = new Uint8Array(map.count);
      this.blockCounts = map.blocks.map(() => [0, 0, 0, 0]);
    }
    this.map = map;
    if (before) this.#emit('layout', { sameSeats });
  }

  async #open() {
    try {
      await Promise.all([this.#readEvent(), this.#readLayout()]);
      if (this.closed) return;
      this.#isFresh = true;
    } catch (error) {
      this.failure = error;
      return;
    }
    this.#follower = new Follower(`${this.#path}/stream`, this.token, {
      onEvent: (event) => this.#take(event),
      onState: (state) => this.#setConnection(state),
      onRefused: (error) => (this.failure = error),
    });
  }

  close() {
    this.closed = true;
    this.#follower?.close();
    this.#listeners.clear();
  }

  #setConnection(state) {
    if (state === this.connection) return;
    if (state === 'away') this.#wasAway = true;
    if (state === 'live' && this.#wasAway) {
      this.#wasAway = false;
      this.resumed++;
      this.#emit('resumed');
    }
    this.connection = state;
  }

  async #take(event) {
    this.#emit('pulse');
    if (event.comment) return;
    const data = JSON.parse(event.data);
    if (event.name === 'snapshot') await this.#load();
    else if (event.name === 'seats') this.#apply(data);
    else if (event.name !== 'stats') this.#emit('news', { name: event.name, ...data }); // our counts follow the seats
  }

  /** Availability, with the event and the layout it belongs to; null if the event has left the sale. */
  async #readAvailability() {
    const read = () => call('GET', `${this.#path}/availability`, { token: this.token });
    try {
      if (!this.#isFresh) await this.#readEvent();
      this.#isFresh = false;
      let answer = await read();
      for (let i = 0; answer.layout_etag !== this.#etag; i++) {
        if (i === LAYOUT_TRIES_MAX) throw new ApiError(0, 'offline', 'the layout is changing');
        await this.#readLayout();
        answer = await read();
      }
      return answer;
    } catch (error) {
      if (error.status !== 404) throw error;
      this.failure = new ApiError(404, 'event_over', error.message); // the stream stays: it still tells of our orders
      return null;
    }
  }

  async #load() {
    const answer = await this.#readAvailability();
    if (!answer || this.closed) return;
    this.#loaded = frameNumber(answer.stream_id);
    this.states.set(unpack(answer));
    this.#counts = [0, 0, 0, 0];
    for (const counts of this.blockCounts) counts.fill(0);
    for (let i = 0; i < this.states.length; i++) {
      this.#counts[this.states[i]]++;
      this.blockCounts[this.map.blockOf[i]][this.states[i]]++;
    }
    this.#show();
    this.#emit('loaded');
  }

  #apply(frame) {
    if (frameNumber(frame.id) <= this.#loaded) return;
    const changes = [];
    for (const [index, status, reason] of frame.seats) {
      const before = this.states[index];
      const after = STATES.indexOf(status);
      if (before === undefined || after < 0 || before === after) continue;
      this.states[index] = after;
      this.#counts[before]--;
      this.#counts[after]++;
      const counts = this.blockCounts[this.map.blockOf[index]];
      counts[before]--;
      counts[after]++;
      changes.push({ index, before, after, reason });
    }
    if (changes.length === 0) return;
    this.#show();
    this.#emit('changes', changes);
  }

  #show() {
    if (this.#drawn) return;
    this.#drawn = requestAnimationFrame(() => {
      this.#drawn = 0;
      this.counts = [...this.#counts];
      this.version++;
    });
    if (document.hidden) {
      cancelAnimationFrame(this.#drawn);
      this.#drawn = 0;
      this.counts = [...this.#counts];
      this.version++;
    }
  }
}

/** The event that pages share, so that going from map to checkout keeps one stream. */
class Current {
  live = null;

  open(eventId, token) {
    if (this.live && this.live.eventId === eventId && this.live.token === token && !this.live.failure) return this.live;
    this.close();
    this.live = new LiveEvent(eventId, token);
    return this.live;
  }

  close() {
    this.live?.close();
    this.live = null;
  }
}

export const current = new Current();
