// SPDX-License-Identifier: Apache-2.0
// Bytes on a socket: for requests that no proper client would send, and for many connections that speak at the same
// moment.

import { connect } from 'node:net';

import { within } from './wait.mjs';

export const RAW_LIMIT_MS = 60000;

/** Sends bytes and collects what comes back until the other side closes, `until` says enough, or the limit passes. */
export function exchange(server, bytes, { until, limitMs = RAW_LIMIT_MS, end = false } = {}) {
  return new Promise((resolve) => {
    const socket = connect(server.port, '127.0.0.1');
    let text = '';
    const done = (outcome) => {
      clearTimeout(timer);
      socket.destroy();
      resolve({ text, outcome, status: Number(/^HTTP\/1\.[01] (\d{3})/.exec(text)?.[1] ?? 0) });
    };
    const timer = setTimeout(() => done('limit'), limitMs);
    socket.on('connect', () => {
      if (end) socket.end(bytes);
      else socket.write(bytes);
    });
    socket.setEncoding('latin1');
    socket.on('data', (part) => {
      text += part;
      if (until && until(text)) done('enough');
    });
    socket.on('error', () => done('error'));
    socket.on('close', () => done('closed'));
  });
}

/** True once the text holds a complete answer with Content-Length. */
export function oneAnswer(text) {
  const head = text.indexOf('\r\n\r\n');
  if (head < 0) return false;
  const length = /content-length: *(\d+)/i.exec(text.slice(0, head));
  return length !== null && text.length >= head + 4 + Number(length[1]);
}

/** A request as bytes. */
export function rawRequest(method, path, headers = {}, body = '') {
  const lines = Object.entries({ host: '127.0.0.1', ...headers }).map(([name, value]) => `${name}: ${value}\r\n`);
  return Buffer.concat([Buffer.from(`${method} ${path} HTTP/1.1\r\n${lines.join('')}\r\n`), Buffer.from(body)]);
}

/** A connection that sends one request at a time and reads one answer at a time, as thinly as possible. */
export class Wire {
  static open(server) {
    const wire = new Wire();
    return within(
      'a connection',
      new Promise((resolve, reject) => {
        wire.socket = connect({ port: server.port, host: '127.0.0.1', noDelay: true }, () => resolve(wire));
        wire.socket.setEncoding('latin1');
        wire.text = '';
        wire.socket.on('data', (part) => {
          wire.text += part;
          wire.look();
        });
        const fail = (error) => {
          reject(error);
          wire.pending?.reject(error ?? new Error('the connection was closed'));
        };
        wire.socket.on('error', fail);
        wire.socket.on('close', () => fail(new Error('the connection was closed')));
      }),
    );
  }

  look() {
    if (!this.pending || !oneAnswer(this.text)) return;
    const head = this.text.indexOf('\r\n\r\n');
    const length = Number(/content-length: *(\d+)/i.exec(this.text.slice(0, head))[1]);
    const answer = {
      status: Number(this.text.slice(9, 12)),
      head: this.text.slice(0, head),
      text: this.text.slice(head + 4, head + 4 + length),
    };
    this.text = this.text.slice(head + 4 + length);
    const { resolve } = this.pending;
    this.pending = undefined;
    resolve(answer);
  }

  exchange(bytes) {
    const answer = new Promise((resolve, reject) => {
      this.pending = { resolve, reject };
    });
    this.socket.write(bytes);
    return answer;
  }

  close() {
    this.pending = undefined;
    this.socket.destroy();
  }
}
