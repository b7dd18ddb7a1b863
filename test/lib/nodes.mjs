// SPDX-License-Identifier: Apache-2.0
// Several nodes on one PostgreSQL database, with or without Redis. Tokens of one node are good on every other.

import { Caller } from './client.mjs';
import { makeDatabase } from './postgres.mjs';
import { Server } from './server.mjs';
import { World } from './world.mjs';

export class Nodes {
  /** `postgres`: a server of test/lib/postgres.mjs; `warm`: a URL for --warm; `args`: more options for every node. */
  static async start(count, { postgres, warm, args = [] } = {}) {
    const nodes = new Nodes();
    nodes.store = makeDatabase(postgres.url);
    nodes.list = [];
    nodes.args = [...(warm ? ['--warm', warm] : []), ...args];
    for (let i = 0; i < count; i++) await nodes.add();
    nodes.world = new World(nodes.list[0]);
    return nodes;
  }

  async add() {
    const secret = this.list[0]?.secret;
    const node = new Server({ store: this.store, args: this.args, secret });
    await node.launch();
    this.list.push(node);
    return node;
  }

  /** The same person, asking another node. */
  at(index, caller) {
    return new Caller(this.list[index], caller.bearer, caller);
  }

  async stop() {
    for (const node of this.list) await node.stop();
  }

  verify() {
    return this.list[0].verify();
  }

  select(sql) {
    return this.list[0].select(sql);
  }
}
