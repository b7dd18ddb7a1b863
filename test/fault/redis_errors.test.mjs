// SPDX-License-Identifier: Apache-2.0
// Redis there, but not itself, under traffic over two nodes: flushed, empty after a restart that nobody noticed, full,
// read-only, with keys of the wrong type. No request fails because of it, nothing is held twice, no hold that was
// acknowledged is lost, and everything stands in it again afterwards.

import { after, before, describe, it } from 'node:test';

import { Registry } from '../lib/redis.mjs';
import { Scene } from '../lib/traffic.mjs';

describe('a Redis that answers, but not as it should', () => {
  let scene;
  before(async () => {
    scene = await Scene.open();
  });
  after(() => scene.close());

  it('flushed: filters go on, and the keys come back', async () => {
    await scene.play(
      async (traffic) => {
        await scene.redis.command('FLUSHALL');
        await scene.moves(traffic, 20);
      },
      { noFailures: true },
    );
  });

  it('restarted at once, empty, before any breaker has opened', async () => {
    await scene.play(() => scene.redis.restart(), { noFailures: true });
    await scene.nodes.breakers('closed');
  });

  it('out of memory: every write is refused', async () => {
    await scene.play(
      async (traffic) => {
        await scene.redis.command('CONFIG', 'SET', 'maxmemory', '1');
        await scene.moves(traffic, 30);
        await scene.redis.command('CONFIG', 'SET', 'maxmemory', '0');
      },
      { noFailures: true },
    );
    await scene.nodes.breakers('closed');
  });

  it('a replica all of a sudden: READONLY', async () => {
    await scene.play(
      async (traffic) => {
        await scene.redis.command('CONFIG', 'SET', 'replica-serve-stale-data', 'yes');
        await scene.redis.command('REPLICAOF', '127.0.0.1', '1'); // where nobody answers
        await scene.moves(traffic, 30);
        await scene.redis.command('REPLICAOF', 'NO', 'ONE');
      },
      { noFailures: true },
    );
    await scene.nodes.breakers('closed');
  });

  it('keys of the wrong type at every place', async () => {
    await scene.play(
      async (traffic) => {
        const registry = new Registry(scene.redis, scene.busy);
        for (const seat of scene.busy.seats.slice(0, 20)) {
          // In one step: nodes write the same keys meanwhile.
          const plant = "for _, key in ipairs(KEYS) do redis.call('DEL', key) redis.call('RPUSH', key, 'nothing of ours') end";
          await scene.redis.command('EVAL', plant, 2, registry.lockKey(seat), registry.holdKey(seat));
        }
        await scene.moves(traffic, 40);
        for (const seat of scene.busy.seats.slice(0, 20)) await scene.redis.command('DEL', registry.lockKey(seat), registry.holdKey(seat));
      },
      { noFailures: true },
    );
    await scene.nodes.breakers('closed');
  });
});
