// SPDX-License-Identifier: Apache-2.0
// The dashboard's figures. What happens to this event's seats comes from the stream itself; the engine's own figures
// are read again when the stream shows life, at most once a second. Nothing runs on a timer of its own: a silent
// stream's heartbeat is enough to keep the figures moving.
import { call } from '../lib/api.js';
import { HELD, SOLD } from '../lib/seats.js';

const KEPT_S = 300;
const READ_MS = 1000;

/** The engine's buckets as [[upper bound, cumulative count], …]. */
export const bucketsOf = (engine) => engine.latency.map(({ seconds, count }) => [seconds ?? Infinity, count]);

/** The value below which `share` of what came between two readings lies, by interpolation; null if nothing came. */
export function quantile(before, after, share) {
  const deltas = after.map(([bound, count], i) => [bound, count - (before[i]?.[1] ?? 0)]);
  const total = deltas.at(-1)?.[1] ?? 0;
  if (total <= 0) return null;
  const rank = share * total;
  let low = 0;
  let below = 0;
  for (const [bound, count] of deltas) {
    if (count >= rank) {
      if (bound === Infinity) return low;
      return low + (bound - low) * ((rank - below) / Math.max(1e-9, count - below));
    }
    low = bound;
    below = count;
  }
  return low;
}

export class Figures {
  series = $state.raw({ time: [], holds: [], conflicts: [], expiries: [], p50: [], p95: [], p99: [] });
  history = $state.raw({ time: [], sold: [], held: [] });
  engine = $state.raw(null); // as /api/admin/figures last told it
  #before = null;
  #lastRead = 0;
  #reading = false;
  #counted = { holds: 0, expiries: 0 };
  #undo = [];

  constructor(live) {
    this.live = live;
    this.#undo = [live.on('changes', (changes) => this.#count(changes)), live.on('pulse', () => this.#pulse())];
    this.#readHistory();
    this.#pulse();
  }

  close() {
    this.closed = true;
    for (const undo of this.#undo) undo();
  }

  async #readHistory() {
    try {
      const rows = await call('GET', `/api/admin/events/${this.live.eventId}/occupancy/history?limit=1000`, { token: this.live.token });
      this.history = {
        time: rows.map((row) => Date.parse(row.snapshot_at) / 1000),
        sold: rows.map((row) => (100 * row.sold) / Math.max(1, row.total)),
        held: rows.map((row) => (100 * row.held) / Math.max(1, row.total)),
      };
    } catch {
      /* the chart begins with what the stream brings */
    }
  }

  #count(changes) {
    for (const { after, reason } of changes) {
      if (after === HELD) this.#counted.holds++;
      if (reason === 'ttl_expired') this.#counted.expiries++;
    }
  }

  async #pulse() {
    const now = performance.now();
    if (this.#reading || this.closed || now - this.#lastRead < READ_MS) return;
    this.#reading = true;
    const elapsed = this.#lastRead ? (now - this.#lastRead) / 1000 : 0;
    this.#lastRead = now;
    const engine = await call('GET', '/api/admin/figures', { token: this.live.token }).catch(() => null);
    if (!this.closed) {
      if (elapsed > 0) this.#add(elapsed, engine);
      if (engine) this.engine = this.#before = engine;
    }
    this.#reading = false;
  }

  #add(elapsed, after) {
    // Another start, and counters that began anew, cannot be compared.
    const before = after && this.#before?.started_at === after.started_at ? this.#before : null;
    const conflicts = before ? (after.holds.conflicts - before.holds.conflicts) / elapsed : null;
    const percentile = (n) => (before ? (quantile(bucketsOf(before), bucketsOf(after), n / 100) ?? NaN) * 1000 || null : null);
    const point = {
      time: Date.now() / 1000,
      holds: this.#counted.holds / elapsed,
      conflicts,
      expiries: this.#counted.expiries / elapsed,
      p50: percentile(50),
      p95: percentile(95),
      p99: percentile(99),
    };
    this.#counted = { holds: 0, expiries: 0 };
    const series = {};
    for (const key of Object.keys(this.series)) series[key] = [...this.series[key], point[key]].slice(-KEPT_S);
    this.series = series;
    const { counts, map } = this.live;
    this.history = {
      time: [...this.history.time, point.time],
      sold: [...this.history.sold, (100 * counts[SOLD]) / map.count],
      held: [...this.history.held, (100 * counts[HELD]) / map.count],
    };
  }
}
