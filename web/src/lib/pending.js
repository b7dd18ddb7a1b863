// SPDX-License-Identifier: Apache-2.0
// Where several nodes share the work, a command may be answered 202: the node that decides it has not answered yet. Its
// answer, a refusal too, is asked for until it is there. A payment whose outcome is not known is 202 as well, but is
// shown as it is: it names a checkout, and no location.

const WAITS_MS = [250, 500, 1000, 1000, 2000, 2000, 3000, 3000, 4000, 5000];

const later = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

export const isPending = (status, body) => status === 202 && body?.data?.status === 'pending' && typeof body.data.location === 'string';

/** Asks with `ask(location)`, which gives `{ status, body }` or throws the refusal; undefined if it is not there in time. */
export async function settle(body, ask, wait = later) {
  for (const ms of WAITS_MS) {
    await wait(ms);
    const answer = await ask(body.data.location);
    if (!isPending(answer.status, answer.body)) return answer.body;
  }
  return undefined;
}
