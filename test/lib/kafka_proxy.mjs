// SPDX-License-Identifier: Apache-2.0
// Stands between a node and Kafka's brokers, on a port for each, and can cut them off. No connection is closed by that:
// nobody is told.

import { connect, createServer } from 'node:net';

import { within } from './wait.mjs';

/** Kinds of requests, by Kafka's numbers. */
export const PRODUCE = 0;
export const FETCH = 1;
export const HEARTBEAT = 12;

export class KafkaProxy {
  static async listen(brokers, query = '') {
    const proxy = new KafkaProxy();
    proxy.targets = []; // ports, as soon as the brokers have some
    proxy.links = new Set();
    proxy.passed = new Map(); // kind of request → how many went on to a broker
    proxy.servers = Array.from({ length: brokers }, (_, i) => createServer((client) => proxy.serve(client, i)));
    for (const server of proxy.servers) await new Promise((done) => server.listen(0, '127.0.0.1', done));
    proxy.ports = proxy.servers.map((server) => server.address().port);
    proxy.url = `kafka://${proxy.ports.map((port) => `127.0.0.1:${port}`).join(',')}${query}`;
    return proxy;
  }

  serve(client, index) {
    const link = { client, broker: connect(this.targets[index], '127.0.0.1'), cut: this.isCut, held: [], rest: Buffer.alloc(0), answerMs: 0 };
    const end = () => {
      if (link.cut) return; // neither side hears that the other has gone
      client.destroy();
      link.broker.destroy();
      this.links.delete(link);
    };
    this.links.add(link);
    for (const socket of [client, link.broker]) socket.setNoDelay(true).on('error', end).on('close', end);
    client.on('data', (data) => {
      if (link.cut) link.held.push(data);
      else this.pass(link, data);
    });
    link.broker.on('data', (data) => {
      if (link.answerMs === 0) client.write(data);
      else setTimeout(() => client.write(data), link.answerMs);
    });
  }

  pass(link, data) {
    link.broker.write(data);
    link.rest = Buffer.concat([link.rest, data]);
    // A request is its size in four bytes, its kind in two, and more.
    while (link.rest.length >= 6 && link.rest.length >= 4 + link.rest.readInt32BE(0)) {
      const kind = link.rest.readInt16BE(4);
      this.passed.set(kind, (this.passed.get(kind) ?? 0) + 1);
      link.rest = link.rest.subarray(4 + link.rest.readInt32BE(0));
      if (kind === this.awaited?.kind) this.awaited.passed(link);
    }
  }

  /** Cuts just behind the next request of that kind, whose answer is `answerMs` on its way. */
  async cutAfter(kind, answerMs) {
    const passed = new Promise((done) => {
      this.awaited = {
        kind,
        passed: (link) => {
          link.answerMs = answerMs;
          this.awaited = undefined;
          this.cut();
          done();
        },
      };
    });
    await within(`a request of kind ${kind}`, passed);
  }

  /** Nothing that the node sends arrives any more. Brokers only answer: what they still say is about what did arrive. */
  cut() {
    this.isCut = true;
    for (const link of this.links) link.cut = true;
  }

  /** What the node sent meanwhile arrives after all, for TCP sends it again and again; then those connections end. */
  heal() {
    this.isCut = false;
    for (const link of this.links) {
      if (!link.cut) continue;
      this.links.delete(link);
      link.broker.removeAllListeners('data').resume();
      for (const data of link.held) this.pass(link, data);
      link.broker.end();
      link.client.destroy();
    }
  }

  close() {
    for (const server of this.servers) server.close();
    for (const link of this.links) {
      link.client.destroy();
      link.broker.destroy();
    }
  }
}
