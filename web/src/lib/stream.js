// SPDX-License-Identifier: Apache-2.0
// Server-sent events over fetch, because EventSource cannot carry a token. It reconnects by itself with Last-Event-ID,
// so nothing is missed; the server answers with a new snapshot where it cannot resume. A line that is silent for longer
// than two heartbeats is taken for dead.
import { send } from './api.js';

const RETRY_MS = [300, 700, 1500, 3000, 5000];
const SILENCE_MS = 35000;

export class EventParser {
  #text = '';

  /** Feeds text; gives the events that are complete: {name, id, data} and {comment: true}. */
  push(text) {
    const parts = (this.#text + text).split('\n\n');
    this.#text = parts.pop();
    return parts.map((part) => {
      const event = { name: 'message', id: null, data: '' };
      for (const line of part.split('\n')) {
        if (line.startsWith('event: ')) event.name = line.slice(7);
        else if (line.startsWith('id: ')) event.id = line.slice(4);
        else if (line.startsWith('data: ')) event.data += line.slice(6);
      }
      return event.data === '' ? { comment: true } : event;
    });
  }
}

/**
 * Follows a stream until close(). `onEvent` may be async: the next event waits for it. `onState` hears 'connecting',
 * 'live' and 'away'; `onRefused` that the server will not have us (401, 403, 404).
 */
export class Follower {
  #stop = new AbortController();
  #wake = null;
  #line = null;
  #lastId = null;
  #tries = 0;

  constructor(path, token, handlers) {
    Object.assign(this, { path, token, handlers });
    this.onOnline = () => this.#wake?.();
    this.onOffline = () => this.#line?.abort();
    addEventListener('online', this.onOnline);
    addEventListener('offline', this.onOffline);
    this.#run();
  }

  close() {
    removeEventListener('online', this.onOnline);
    removeEventListener('offline', this.onOffline);
    this.#stop.abort();
    this.#line?.abort();
    this.#wake?.();
  }

  async #run() {
    this.handlers.onState('connecting');
    while (!this.#stop.signal.aborted) {
      try {
        await this.#read();
      } catch (error) {
        if (this.#stop.signal.aborted) return;
        if ([401, 403, 404].includes(error.status)) {
          this.handlers.onRefused(error);
          return;
        }
      }
      if (this.#stop.signal.aborted) return;
      this.handlers.onState('away');
      const wait = navigator.onLine === false ? 60000 : RETRY_MS[Math.min(this.#tries++, RETRY_MS.length - 1)];
      await new Promise((done) => {
        const timer = setTimeout(done, wait);
        this.#wake = () => {
          clearTimeout(timer);
          done();
        };
      });
      this.#wake = null;
    }
  }

  async #read() {
    this.#line = new AbortController();
    const headers = this.#lastId ? { 'Last-Event-ID': this.#lastId } : {};
    const response = await send('GET', this.path, { token: this.token, headers, signal: this.#line.signal });
    this.#tries = 0;
    this.handlers.onState('live');
    const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
    const parser = new EventParser();
    let timer;
    try {
      for (;;) {
        clearTimeout(timer);
        timer = setTimeout(() => this.#line.abort(), SILENCE_MS);
        const { done, value } = await reader.read();
        if (done) return;
        for (const event of parser.push(value)) {
          await this.handlers.onEvent(event);
          if (event.id) this.#lastId = event.id;
        }
      }
    } finally {
      clearTimeout(timer);
    }
  }
}
