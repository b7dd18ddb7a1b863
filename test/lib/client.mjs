// SPDX-License-Identifier: Apache-2.0
// A small client: JSON in and out over node:http with connections kept open, and assertions on the two envelopes that
// every answer wears. Redirects, retries and guesses are deliberately absent: a test sees exactly what the server said.

import assert from 'node:assert/strict';
import { Agent, request as httpRequest } from 'node:http';

import { within } from './wait.mjs';

export const REQUEST_LIMIT_MS = 60000;
const agent = new Agent({ keepAlive: true, maxSockets: 64 });

/** One exchange. `body` is sent as JSON unless it is a string or a Buffer. Resolves {status, headers, text, body}. */
export function send(url, { method = 'GET', token, body, headers = {}, via = agent, limitMs = REQUEST_LIMIT_MS } = {}) {
  const raw = body === undefined ? undefined : typeof body === 'string' || Buffer.isBuffer(body) ? body : JSON.stringify(body);
  const all = { ...headers };
  if (token !== undefined) all.authorization = `Bearer ${token}`;
  if (raw !== undefined) {
    if (all['content-type'] === undefined) all['content-type'] = 'application/json';
    all['content-length'] = Buffer.byteLength(raw);
  }
  for (const [name, value] of Object.entries(all)) if (value === null) delete all[name];
  const attempt = (again) =>
    new Promise((resolve, reject) => {
      const request = httpRequest(url, { method, headers: all, agent: via }, (response) => {
        const parts = [];
        response.on('data', (part) => parts.push(part));
        response.on('error', reject);
        response.on('end', () => {
          const text = Buffer.concat(parts).toString('utf8');
          let parsed;
          try {
            parsed = text.length > 0 ? JSON.parse(text) : undefined;
          } catch {
            parsed = undefined;
          }
          resolve({ status: response.statusCode, headers: response.headers, text, body: parsed });
        });
      });
      request.on('error', (error) => {
        // A kept connection may be closed by the other side just as we use it; nothing was processed then.
        if (again && request.reusedSocket && error.code === 'ECONNRESET' && method === 'GET') resolve(attempt(false));
        else reject(error);
      });
      request.end(raw);
    });
  return within(`${method} ${url}`, attempt(true), limitMs);
}

/** A caller with a token: paths relative to the server, shorthand for each method. */
export class Caller {
  constructor(server, token, identity = {}) {
    this.server = server;
    this.bearer = token;
    Object.assign(this, identity);
  }

  send(method, path, body, { key, headers = {}, ...rest } = {}) {
    const all = key === undefined ? headers : { 'idempotency-key': key, ...headers };
    return send(this.server.url + path, { method, token: this.bearer, body, headers: all, ...rest });
  }

  get(path, options) {
    return this.send('GET', path, undefined, options);
  }

  post(path, body = {}, options = undefined) {
    return this.send('POST', path, body, options);
  }

  patch(path, body, options) {
    return this.send('PATCH', path, body, options);
  }

  put(path, body, options) {
    return this.send('PUT', path, body, options);
  }

  del(path, options) {
    return this.send('DELETE', path, undefined, options);
  }
}

const describe = (response) => `${response.status} ${response.text.slice(0, 600)}`;

/** Requires a success with the given status and returns its `data`. */
export function ok(response, status = 200) {
  assert.equal(response.status, status, describe(response));
  assert.match(response.headers['content-type'] ?? '', /^application\/json/);
  assert.match(response.headers['cache-control'] ?? '', /no-store/);
  assert.ok((response.headers['x-request-id'] ?? '').length > 0, 'X-Request-Id is missing');
  assert.ok(response.body !== undefined && 'data' in response.body, `no data in ${describe(response)}`);
  assert.ok(!('error' in response.body), describe(response));
  return response.body.data;
}

/** Requires a failure with the given status and code, in the full envelope, and returns its `error`. `what` names the case. */
export function fails(response, status, code, what = '') {
  assert.equal(response.status, status, `${what} expected ${status} ${code}, got ${describe(response)}`.trim());
  assert.match(response.headers['content-type'] ?? '', /^application\/json/);
  assert.match(response.headers['cache-control'] ?? '', /no-store/);
  const error = response.body?.error;
  assert.ok(error !== undefined, `no error envelope in ${describe(response)}`);
  assert.deepEqual(Object.keys(response.body), ['error']);
  assert.deepEqual(Object.keys(error).sort(), ['code', 'details', 'message', 'request_id']);
  assert.equal(error.code, code, describe(response));
  assert.ok(typeof error.message === 'string' && error.message.length > 0, 'an error has a message');
  assert.ok(error.details !== null && typeof error.details === 'object' && !Array.isArray(error.details), 'details is an object');
  assert.equal(error.request_id, response.headers['x-request-id'], 'the request id stands in header and body');
  if (status === 429 || status === 503) {
    assert.match(response.headers['retry-after'] ?? '', /^[1-9][0-9]*$/, `${status} carries Retry-After`);
  }
  return error;
}

/** Requires one of several [status, code] pairs, where the contract leaves the choice open. */
export function failsWithOneOf(response, ...pairs) {
  const pair = pairs.find(([status, code]) => response.status === status && response.body?.error?.code === code);
  assert.ok(pair, `expected one of ${JSON.stringify(pairs)}, got ${describe(response)}`);
  return fails(response, pair[0], pair[1]);
}
