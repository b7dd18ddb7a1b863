// SPDX-License-Identifier: Apache-2.0
// The server's time. Holds end by the server's clock, so countdowns must not trust the device's. Each answer's Date
// header says that the server's clock was within one second; the answers' bounds are intersected, so a few of them
// place it within a fraction of a second. A contradiction (the device slept, or was set) begins anew.

let low = -Infinity;
let high = Infinity;
let offset = 0;

/** Learns from one answer: what its Date header said, and when it was asked and answered by our clock. */
export function learnTime(dateHeader, sentMs, receivedMs) {
  const date = Date.parse(dateHeader ?? '');
  if (Number.isNaN(date)) return;
  const from = date - receivedMs;
  const to = date + 1000 - sentMs;
  low = Math.max(low, from);
  high = Math.min(high, to);
  if (low > high) {
    low = from;
    high = to;
  }
  offset = (low + high) / 2;
}

export const serverNow = () => Date.now() + offset;

/** One ticking `now` for everything that counts down; it ticks only while somebody watches. */
class Ticker {
  now = $state(serverNow());
  #watchers = 0;
  #timer = null;

  watch() {
    this.#watchers++;
    this.now = serverNow();
    this.#timer ??= setInterval(() => (this.now = serverNow()), 250);
    return () => {
      if (--this.#watchers === 0) {
        clearInterval(this.#timer);
        this.#timer = null;
      }
    };
  }
}

export const ticker = new Ticker();
