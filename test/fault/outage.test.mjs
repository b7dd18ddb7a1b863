// SPDX-License-Identifier: Apache-2.0
// Everything at once, under traffic over three nodes: Redis dies, PostgreSQL crashes, a node is killed. Nothing is
// acknowledged that is not so, and service comes back by itself, first without Redis, then with it.

import { after, before, describe, it } from 'node:test';

import { Scene } from '../lib/traffic.mjs';
import { pause } from '../lib/wait.mjs';

describe('an outage of everything', () => {
  let scene;
  before(async () => {
    scene = await Scene.open({ nodes: 3 });
  });
  after(() => scene.close());

  it('Redis killed, PostgreSQL crashed and a node killed, at the same moment', async () => {
    await scene.play(async (traffic) => {
      await Promise.all([scene.redis.kill(), scene.postgres.restartAsync('immediate'), scene.nodes.kill9(1)]);
      await scene.moves(traffic, 20); // without Redis, on two nodes
      await scene.redis.launch();
      await scene.nodes.revive(1);
      await scene.nodes.ready();
      await scene.nodes.breakers('closed');
    });
  });

  it('Redis frozen, a node frozen, PostgreSQL restarted, and all of them back one after the other', async () => {
    await scene.play(async (traffic) => {
      scene.redis.freeze();
      scene.nodes.freeze(2);
      await scene.postgres.restartAsync('fast');
      await pause(5500); // longer than a hold lives
      await scene.moves(traffic, 10);
      scene.nodes.thaw(2);
      await scene.moves(traffic, 10);
      scene.redis.thaw();
      await scene.nodes.ready();
      await scene.nodes.breakers('closed');
    });
  });
});
