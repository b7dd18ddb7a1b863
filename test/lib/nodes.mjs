// SPDX-License-Identifier: Apache-2.0
// Several nodes on one PostgreSQL database, with or without Redis. Tokens of one node are good on every other.

import assert from 'node:assert/strict';

import { Caller, send } from './client.mjs';
import { PARTITION_COUNT } from './kafka.mjs';
import { makeDatabase } from './postgres.mjs';
import { runAsync, Server } from './server.mjs';
import { waitFor } from './wait.mjs';
import { metric, World } from './world.mjs';

export const nodeName = (index) => `node-${index}`;

export class Nodes {
  /**
   * `postgres`: a server of test/lib/postgres.mjs; `warm`: a URL for --warm; `kafka`: a server of test/lib/kafka.mjs;
   * `args`: more options for every node.
   */
  static async start(count, { postgres, warm, kafka, args = [] } = {}) {
    const nodes = new Nodes();
    nodes.store = makeDatabase(postgres.url);
    nodes.list = [];
    nodes.gone = new Set(); // nodes that were killed and not started again
    nodes.kafka = kafka;
    nodes.args = [...(warm ? ['--warm', warm] : []), ...args];
    for (let i = 0; i < count; i++) await nodes.add();
    nodes.world = new World(nodes.list[0]);
    return nodes;
  }

  async add() {
    const secret = this.list[0]?.secret;
    const node = new Server({ store: this.store, args: [...this.args, ...this.orderArgs(this.list.length)], secret });
    await node.launch();
    this.list.push(node);
    return node;
  }

  /** The mock can make no topics: nodes have the names for which it has some. */
  orderArgs(index) {
    if (this.kafka === undefined) return [];
    return ['--order', this.kafka.urlOf?.(index) ?? this.kafka.url, '--node-name', nodeName(index), ...(this.kafka.isMock ? ['--order-make-topics', 'off'] : [])];
  }

  /** Waits until every partition is some live node's, and every live node has some. */
  shared(limitMs = 60000) {
    return waitFor(
      'the nodes to share the partitions',
      async () => {
        const counts = await Promise.all(this.alive().map((node) => metric(node, 'holdfast_order_partitions')));
        return counts.every((count) => count > 0) && counts.reduce((sum, count) => sum + count, 0) === PARTITION_COUNT;
      },
      limitMs,
      100,
    );
  }

  /** The same person, asking another node. */
  at(index, caller) {
    const { org, user, role } = caller;
    return new Caller(this.list[index], caller.bearer, { org, user, role });
  }

  async kill9(index) {
    this.gone.add(this.list[index]);
    await this.list[index].kill9();
  }

  /** Starts a node that was killed. */
  async revive(index) {
    await this.list[index].launch();
    this.gone.delete(this.list[index]);
  }

  freeze(index) {
    this.list[index].child.kill('SIGSTOP');
  }

  thaw(index) {
    this.list[index].child.kill('SIGCONT');
  }

  alive() {
    return this.list.filter((node) => !this.gone.has(node));
  }

  async readiness(node) {
    const answer = await send(`${node.url}/readyz`);
    return { http: answer.status, ...answer.body.data };
  }

  /** Waits until every live node's breaker is in `state` (and, when closed, the node is ready). */
  breakers(state, limitMs = 45000) {
    return waitFor(
      `every breaker to be ${state}`,
      async () => {
        const seen = await Promise.all(this.alive().map((node) => this.readiness(node)));
        return seen.every((ready) => ready.breaker === state);
      },
      limitMs,
      50,
    );
  }

  /** Waits until every live node says that it can work. */
  ready() {
    return waitFor(
      'every node to be ready',
      async () => (await Promise.all(this.alive().map((node) => this.readiness(node)))).every((seen) => seen.http === 200),
      45000,
      100,
    );
  }

  async stop() {
    for (const node of this.alive()) await node.stop();
  }

  verify() {
    return this.list[0].verify();
  }

  /** The proof of the store: no promise is broken. */
  async prove() {
    const proof = await this.verify();
    assert.equal(proof.status, 0, proof.stdout + proof.stderr);
  }

  /** `holdfast registry status|reconcile` through one node: {status, stdout, stderr}. */
  registryCommand(verb, index, ...args) {
    const node = this.list[index];
    return runAsync(['registry', verb, '--url', node.url, '--store', this.store, '--jwt-secret-file', node.secretFile, ...args]);
  }

  select(sql) {
    return this.list[0].select(sql);
  }
}
