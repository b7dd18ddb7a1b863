// SPDX-License-Identifier: Apache-2.0
// PostgreSQL in trouble under traffic over several nodes with Redis: killed, its connections cut again and again.
// Nothing is acknowledged that is not so, and service comes back by itself on every node.

import { after, before, describe, it } from 'node:test';

import { Scene } from '../lib/traffic.mjs';
import { pause } from '../lib/wait.mjs';

describe('several nodes whose PostgreSQL is in trouble', () => {
  let scene;
  before(async () => {
    scene = await Scene.open({ nodes: 2 });
  });
  after(() => scene.close());

  it('crashed and started again', async () => {
    await scene.play(async (traffic) => {
      await scene.postgres.restartAsync('immediate');
      await scene.moves(traffic, 20);
      await scene.nodes.ready();
    });
  });

  it('its connections cut again and again', async () => {
    await scene.play(async (traffic) => {
      for (let i = 0; i < 10; i++) {
        await pause(150);
        scene.nodes.select('SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()');
      }
      await scene.moves(traffic, 20);
      await scene.nodes.ready();
    });
  });
});
