// SPDX-License-Identifier: Apache-2.0
// One event, live: the only place that knows the state of its seats. It is filled from the layout and availability,
// and kept true by the stream's frames; everything that draws or counts reads from here.
//
//  1. states[i] is seat i's state, in layout order. Nobody else writes it.
//  2. A frame that is not newer than the availability it was loaded with is skipped, so nothing counts twice.
//  3. A snapshot on the stream means that frames may have been missed: availability is read again.
//  4. Counts follow states seat by seat; people see them at most once a frame of the screen.
import { call } from './api.js';
import { readLayout } from './layout.js';
import { STATES } from './seats.js';
import { Follower } from './stream.js';

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
  #listeners = new Map(); // name → Set
  #follower = null;
  #wasAway = false;
  #drawn = 0;

  constructor(eventId, token) {
    this.eventId = eventId;
    this.token = token;
    this.#open();
  }

  /** Hears 'changes' ({index, before, after, reason}[]), 'loaded', 'news' (the caller's own), 'pulse' (any sign of life). */
  on(name, listener) {
    if (!this.#listeners.has(name)) this.#listeners.set(name, new Set());
    this.#listeners.get(name).add(listener);
    return () => this.#listeners.get(name).delete(listener);
  }

  #emit(name, value) {
    for (const listener of this.#listeners.get(name) ?? []) listener(value);
  }

  async #open() {
    try {
      const base = `/api/events/${this.eventId}`;
      const [event, layout] = await Promise.all([
        call('GET', base, { token: this.token }),
        call('GET', `${base}/layout`, { token: this.token }),
      ]);
      if (this.closed) return;
      this.event = event;
      const map = readLayout(layout);
      this.states = new Uint8Array(map.count);
      this.blockCounts = map.blocks.map(() => [0, 0, 0, 0]);
      this.map = map;
    } catch (error) {
      this.failure = error;
      return;
    }
    this.#follower = new Follower(`/api/events/${this.eventId}/stream`, this.token, {
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
    else this.#emit('news', { name: event.name, ...data });
  }

  async #load() {
    const answer = await call('GET', `/api/events/${this.eventId}/availability`, { token: this.token });
    if (this.closed || answer.count !== this.map.count) return;
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
