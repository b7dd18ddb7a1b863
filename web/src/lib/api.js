// SPDX-License-Identifier: Apache-2.0
// The one way to the server: JSON in, `data` out, failures as ApiError with the server's code. It adds the token, an
// Idempotency-Key where an effect must not happen twice, and learns the server's time from every answer.
import { learnTime } from './clock.svelte.js';
import { isPending, settle } from './pending.js';

export class ApiError extends Error {
  constructor(status, code, message, details = {}) {
    super(message);
    Object.assign(this, { status, code, details });
  }

  /** The network, not the server, said no. */
  get isOffline() {
    return this.status === 0;
  }
}

async function errorOf(response) {
  const body = await response.json().catch(() => null);
  const error = body?.error ?? {};
  return new ApiError(response.status, error.code ?? 'internal_error', error.message ?? `HTTP ${response.status}`, error.details ?? {});
}

/** Sends; gives the Response of a success, throws ApiError otherwise. */
export async function send(method, path, { token, body, key, headers = {}, signal } = {}) {
  const all = { ...headers };
  if (token) all.Authorization = `Bearer ${token}`;
  if (body !== undefined) all['Content-Type'] = 'application/json';
  if (key) all['Idempotency-Key'] = key;
  const sent = Date.now();
  let response;
  try {
    response = await fetch(path, { method, headers: all, body: body === undefined ? undefined : JSON.stringify(body), signal });
  } catch (error) {
    if (error.name === 'AbortError') throw error;
    throw new ApiError(0, 'offline', error.message);
  }
  learnTime(response.headers.get('Date'), sent, Date.now());
  if (!response.ok) throw await errorOf(response);
  return response;
}

/** The `data` of an answer; with `whole`, the body with its cursor. */
export async function call(method, path, options = {}) {
  const response = await send(method, path, options);
  let body = await response.json();
  if (isPending(response.status, body)) {
    body = await settle(body, async (location) => {
      const answer = await send('GET', location, { token: options.token, signal: options.signal });
      return { status: answer.status, body: await answer.json() };
    });
    if (body === undefined) throw new ApiError(504, 'outcome_unknown', 'The outcome is not known yet.');
  }
  return options.whole ? body : body.data;
}

export const newKey = () => crypto.randomUUID?.() ?? Array.from(crypto.getRandomValues(new Uint8Array(16)), (b) => b.toString(16).padStart(2, '0')).join('');
