// SPDX-License-Identifier: Apache-2.0
// A reader of server-sent events that keeps all it was sent, so that a test can ask for what came and wait for what is to
// come. It never reconnects by itself.

import assert from 'node:assert/strict';
import { Agent, request as httpRequest } from 'node:http';

import { LIMIT_MS, within } from './wait.mjs';

const STATES = ['available', 'held', 'sold', 'blocked'];

/** Splits a byte stream into events: {event, id, data}. Comments are counted. */
export class SseParser {
  constructor(onEvent) {
    this.onEvent = onEvent;
    this.pending = '';
    this.comments = 0;
  }

  push(text) {
    this.pending += text;
    let end;
    while ((end = this.pending.indexOf('\n\n')) >= 0) {
      const chunk = this.pending.slice(0, end);
      this.pending = this.pending.slice(end + 2);
      const event = { event: 'message', id: undefined, data: '' };
      let lines = 0;
      for (const line of chunk.split('\n')) {
        if (line.startsWith(':')) {
          this.comments++;
          continue;
        }
        const colon = line.indexOf(':');
        const field = colon < 0 ? line : line.slice(0, colon);
        const value = colon < 0 ? '' : line.slice(colon + 1).replace(/^ /, '');
        if (field === 'event') event.event = value;
        else if (field === 'id') event.id = value;
        else if (field === 'data') event.data += (lines++ > 0 ? '\n' : '') + value;
      }
      if (lines > 0) this.onEvent(event);
    }
  }
}

export class Stream {
  constructor() {
    this.events = [];
    this.text = '';
    this.closed = false;
    this.watchers = new Set();
    this.parser = new SseParser((event) => {
      event.json = JSON.parse(event.data);
      this.events.push(event);
      this.wake();
    });
  }

  wake() {
    for (const watcher of [...this.watchers]) watcher();
  }

  /** Resolves with the first truthy result of `probe(this)`, looked at again whenever something arrives. */
  wait(what, probe, limitMs = LIMIT_MS) {
    return within(
      `${what}; so far: ${this.events.map((event) => event.event).join(' ').slice(-300)}`,
      new Promise((resolve, reject) => {
        const look = () => {
          let found;
          try {
            found = probe(this);
          } catch (error) {
            this.watchers.delete(look);
            reject(error);
            return;
          }
          if (found) {
            this.watchers.delete(look);
            resolve(found);
          } else if (this.closed) {
            this.watchers.delete(look);
            reject(new Error(`the stream ended while waiting for: ${what}`));
          }
        };
        this.watchers.add(look);
        look();
      }),
      limitMs,
    );
  }

  of(name) {
    return this.events.filter((event) => event.event === name);
  }

  waitEvent(name, test = () => true, limitMs = LIMIT_MS) {
    return this.wait(`event ${name}`, () => this.of(name).find((event) => test(event.json)), limitMs);
  }

  /** All [index, status, reason] of the seats frames so far, the status as a word. */
  changes() {
    return this.of('seats').flatMap((frame) =>
      frame.json.seats.map(([index, status, reason]) => [index, typeof status === 'number' ? STATES[status] : status, reason]),
    );
  }

  /** Waits until the frames say that seat `index` has the given status (its newest change). */
  waitSeat(index, status, limitMs = LIMIT_MS) {
    return this.wait(
      `seat ${index} to become ${status}`,
      () => {
        const last = this.changes().filter(([seat]) => seat === index).pop();
        return last && last[1] === status ? last : undefined;
      },
      limitMs,
    );
  }

  lastId() {
    return this.events.map((event) => event.id).filter(Boolean).pop();
  }

  close() {
    this.closed = true;
    this.request?.destroy();
    this.agent?.destroy();
    this.wake();
  }
}

/** Opens a stream and waits for its headers. */
export function openStream(server, path, { token, lastEventId } = {}) {
  const stream = new Stream();
  stream.agent = new Agent({ keepAlive: false });
  const headers = { accept: 'text/event-stream' };
  if (token) headers.authorization = `Bearer ${token}`;
  if (lastEventId) headers['last-event-id'] = lastEventId;
  return within(
    `the headers of ${path}`,
    new Promise((resolve, reject) => {
      stream.request = httpRequest(server.url + path, { headers, agent: stream.agent }, (response) => {
        stream.status = response.statusCode;
        stream.headers = response.headers;
        stream.response = response;
        response.setEncoding('utf8');
        response.on('data', (text) => {
          stream.text += text;
          stream.parser.push(text);
        });
        const end = () => {
          stream.closed = true;
          stream.wake();
        };
        response.on('end', end);
        response.on('close', end);
        response.on('error', end);
        resolve(stream);
      });
      stream.request.on('error', (error) => {
        stream.closed = true;
        stream.wake();
        reject(error);
      });
      stream.request.end();
    }),
  );
}

/** Opens the stream of an event and requires its first event to be a snapshot. */
export async function openEventStream(event, caller, options = {}) {
  const stream = await openStream(event.organization.world.server, `${event.path}/stream`, { token: caller.bearer, ...options });
  assert.equal(stream.status, 200);
  assert.match(stream.headers['content-type'], /^text\/event-stream/);
  if (!options.lastEventId) {
    await stream.wait('the first event', () => stream.events.length > 0);
    assert.equal(stream.events[0].event, 'snapshot');
  }
  return stream;
}
