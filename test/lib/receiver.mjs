// SPDX-License-Identifier: Apache-2.0
// A receiver of domain events: an HTTP server that checks every signature, remembers what it took in the order in which it
// came, and answers as a test wants it to. It can go away and come back on the same port.

import assert from 'node:assert/strict';
import { createHmac, randomBytes, timingSafeEqual } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { join } from 'node:path';

import { tempDir } from './server.mjs';
import { waitFor } from './wait.mjs';

export class Receiver {
  constructor() {
    this.secret = randomBytes(24).toString('hex');
    this.secretFile = join(tempDir(), 'webhook-secret');
    writeFileSync(this.secretFile, `${this.secret}\n`, { mode: 0o600 });
    this.port = 0;
    this.taken = []; // events, in order, with duplicates
    this.requests = []; // {events, status, at}
    this.complaints = []; // what was wrong with requests: checked by close()
    /** The status for a batch; may be a promise. Events count as taken if it is 2xx. */
    this.answer = () => 204;
    this.body = ''; // of every answer
  }

  get url() {
    return `http://127.0.0.1:${this.port}/events`;
  }

  /** What a server needs to deliver here. */
  get args() {
    return ['--webhook-url', this.url, '--webhook-secret-file', this.secretFile];
  }

  async listen() {
    this.server = createServer((request, response) => {
      const parts = [];
      request.on('data', (part) => parts.push(part));
      request.on('error', () => {});
      request.on('end', () => this.receive(request, Buffer.concat(parts), response));
    });
    this.server.keepAliveTimeout = 60000;
    await new Promise((done, fail) => this.server.on('error', fail).listen(this.port, '127.0.0.1', done));
    this.port = this.server.address().port;
    return this;
  }

  check(request, body) {
    const signature = /^t=(\d+),v1=([0-9a-f]{64})$/.exec(request.headers['holdfast-signature'] ?? '');
    if (!signature) return 'no signature';
    const expected = createHmac('sha256', this.secret).update(`${signature[1]}.`).update(body).digest();
    if (!timingSafeEqual(expected, Buffer.from(signature[2], 'hex'))) return 'a wrong signature';
    if (Math.abs(Date.now() / 1000 - Number(signature[1])) > 120) return 'an old signature';
    if (request.method !== 'POST' || request.url !== '/events') return `${request.method} ${request.url}`;
    if (!/^application\/cloudevents-batch\+json/.test(request.headers['content-type'] ?? '')) return 'a wrong content type';
    return undefined;
  }

  async receive(request, body, response) {
    const complaint = this.check(request, body);
    if (complaint) this.complaints.push(complaint);
    const events = JSON.parse(body.toString('utf8'));
    const status = await this.answer(events, request);
    this.requests.push({ events, status, at: Date.now() });
    if (status >= 200 && status <= 299) this.taken.push(...events);
    response.writeHead(status).end(this.body);
  }

  /** Nobody listens on the port any more. */
  async leave() {
    const closed = new Promise((done) => this.server.close(done));
    this.server.closeAllConnections();
    await closed;
  }

  async close() {
    if (this.server.listening) await this.leave();
    assert.deepEqual(this.complaints, []);
  }

  /** Taken events without those that came again; a second copy must be equal to the first. */
  distinct() {
    const seen = new Map();
    for (const event of this.taken) {
      if (seen.has(event.id)) assert.deepEqual(event, seen.get(event.id), 'an event that comes again is the same');
      else seen.set(event.id, event);
    }
    return [...seen.values()];
  }

  of(subject) {
    return this.distinct().filter((event) => event.subject === subject);
  }

  types(subject) {
    return this.of(subject).map((event) => event.type);
  }

  waitForTypes(subject, types) {
    return waitFor(`${types.join(', ')} of ${subject}`, () => {
      const seen = this.types(subject);
      return seen.length >= types.length ? seen : undefined;
    }).then((seen) => assert.deepEqual(seen, types));
  }

  waitForCount(count, limitMs = 40000) {
    return waitFor(`${count} events`, () => this.distinct().length >= count, limitMs);
  }
}
