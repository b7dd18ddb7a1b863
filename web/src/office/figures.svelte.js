// SPDX-License-Identifier: Apache-2.0
// The dashboard's figures. What happens to seats comes from the stream itself; the engine's own figures stand in
// /metrics, which is read again when the stream shows life, at most once a second. Nothing runs on a timer of its own:
// a silent stream's heartbeat is enough to keep the figures moving.
import { call, send } from '../lib/api.js';
import { HELD, SOLD } from '../lib/seats.js';

const KEPT_S = 300;
const READ_MS = 1000;

/** Prometheus' text to {name or name{labels}: number}. */
export function parseMetrics(body) {
  const values = new Map();
  for (const line of body.split('\n')) {
    if (line === '' || line[0] === '#') continue;
    const at = line.lastIndexOf(' ');
    values.set(line.slice(0, at), Number(line.slice(at + 1)));
  }
  return values;
}

/** The buckets of a histogram: [[upper bound, cumulative count], …]. */
export function bucketsOf(values, name) {
  const found = [];
  for (const [key, value] of values) {
    const match = key.startsWith(`${name}_bucket{`) && key.match(/le="([^"]+)"/);
    if (match) found.push([match[1] === '+Inf' ? Infinity : Number(match[1]), value]);
  }
  return found.sort((a, b) => a[0] - b[0]);
}

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
  releases = $state.raw({ ttl_expired: 0, user_cancelled: 0, payment_failed: 0, admin_override: 0 });
  releasesAll = $state(false); // from /metrics, since the server's start
  engine = $state.raw(null);
  ready = $state.raw(null);
  denied = $state(false);
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
    const releases = { ...this.releases };
    for (const { after, reason } of changes) {
      if (after === HELD) this.#counted.holds++;
      if (reason === 'ttl_expired') this.#counted.expiries++;
      if (!this.releasesAll && reason in releases) releases[reason]++;
    }
    if (!this.releasesAll) this.releases = releases;
  }

  async #pulse() {
    const now = performance.now();
    if (this.#reading || this.closed || now - this.#lastRead < READ_MS) return;
    this.#reading = true;
    const elapsed = this.#lastRead ? (now - this.#lastRead) / 1000 : 0;
    this.#lastRead = now;
    const values = this.denied ? null : await this.#readMetrics();
    try {
      this.ready = await call('GET', '/readyz');
    } catch (error) {
      if (error.status === 503) this.ready = { tiers: { hot: 'up', warm: 'none', store: 'down' }, breaker: 'none' };
    }
    if (elapsed > 0 && !this.closed) this.#add(elapsed, values);
    if (values) this.#before = values;
    this.#reading = false;
  }

  async #readMetrics() {
    try {
      const values = parseMetrics(await (await send('GET', '/metrics', { token: this.live.token })).text());
      const one = (name) => values.get(name) ?? 0;
      this.engine = {
        activeHolds: one('holdfast_holds_active'),
        checkouts: one('holdfast_checkouts_open'),
        readers: one('holdfast_stream_readers'),
        queue: ['inbox', 'waiting', 'store'].map((queue) => [queue, one(`holdfast_queue_depth{queue="${queue}"}`)]),
        reaperLast: one('holdfast_reaper_last_run_timestamp_seconds'),
        reaperRuns: one('holdfast_reaper_runs_total'),
        reaperFound: one('holdfast_reaper_found_total'),
      };
      const releases = {};
      for (const [key, value] of values) {
        const match = key.match(/^holdfast_releases_total\{.*reason="(\w+)"/);
        if (match) releases[match[1]] = value;
      }
      this.releases = { ...this.releases, ...releases };
      this.releasesAll = true;
      return values;
    } catch (error) {
      if (error.status === 401 || error.status === 403) this.denied = true;
      return null;
    }
  }

  #add(elapsed, values) {
    const rate = (name) => (values && this.#before ? Math.max(0, ((values.get(name) ?? 0) - (this.#before.get(name) ?? 0)) / elapsed) : null);
    const conflicts = rate('holdfast_hold_conflict_total');
    const after = values && bucketsOf(values, 'holdfast_command_seconds');
    const before = this.#before && bucketsOf(this.#before, 'holdfast_command_seconds');
    const point = {
      time: Date.now() / 1000,
      holds: this.#counted.holds / elapsed,
      conflicts,
      expiries: this.#counted.expiries / elapsed,
      ...Object.fromEntries([50, 95, 99].map((n) => [`p${n}`, after && before ? (quantile(before, after, n / 100) ?? NaN) * 1000 || null : null])),
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
