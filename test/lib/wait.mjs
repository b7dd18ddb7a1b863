// SPDX-License-Identifier: Apache-2.0
// Waiting for a condition, always with a limit. No test sleeps for luck: it says what it waits for, and fails with that
// sentence when the limit passes. Limits are generous (a sanitizer build on a busy machine is slow); they are there to
// end a hang, never to measure speed.

export const LIMIT_MS = 60000;

export const pause = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

const REST = 4; // times as long as the question took: asking is not what the machine is there for

/** Runs `probe` until it returns something truthy, and returns that. Throws, with the last value seen, at the limit. */
export async function waitFor(what, probe, limitMs = LIMIT_MS, everyMs = 25) {
  const end = Date.now() + limitMs;
  let last;
  for (;;) {
    const asked = Date.now();
    last = await probe();
    if (last) return last;
    const now = Date.now();
    if (now >= end) throw new Error(`waited ${limitMs} ms in vain for: ${what} (last: ${JSON.stringify(last)})`);
    await pause(Math.min(Math.max(everyMs, REST * (now - asked)), Math.max(everyMs, end - now)));
  }
}

/** The promise's result, or an error naming `what` after the limit. */
export async function within(what, promise, limitMs = LIMIT_MS) {
  let timer;
  const late = new Promise((_, reject) => {
    timer = setTimeout(() => reject(new Error(`no answer within ${limitMs} ms: ${what}`)), limitMs);
  });
  try {
    return await Promise.race([promise, late]);
  } finally {
    clearTimeout(timer);
  }
}

/** Waits until the wall clock has passed the given unix second. */
export async function waitUntilUnix(seconds) {
  const ms = seconds * 1000 - Date.now();
  if (ms > 0) await pause(ms + 5);
}

/** Runs `work(item, index)` over items with at most `width` at a time; results in order. */
export async function inParallel(items, width, work) {
  const list = [...items];
  const results = new Array(list.length);
  let next = 0;
  const lanes = Array.from({ length: Math.min(width, list.length) }, async () => {
    while (next < list.length) {
      const index = next++;
      results[index] = await work(list[index], index);
    }
  });
  await Promise.all(lanes);
  return results;
}
