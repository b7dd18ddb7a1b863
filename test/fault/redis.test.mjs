// SPDX-License-Identifier: Apache-2.0
// Redis away, under traffic over two nodes: killed, or hanging for long or for a moment. No request fails because of it,
// nothing is held twice, no hold that was acknowledged is lost, and when it is back everything stands in it again.

import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';

import { ok } from '../lib/client.mjs';
import { Scene } from '../lib/traffic.mjs';
import { pause, waitFor } from '../lib/wait.mjs';
import { block, layoutOf, metric } from '../lib/world.mjs';

const middle = (list) => [...list].sort((a, b) => a - b)[Math.floor(list.length / 2)];

describe('Redis', () => {
  let scene;
  before(async () => {
    scene = await Scene.open();
  });
  after(() => scene.close());

  const onEach = (name, labels) => Promise.all(scene.nodes.alive().map((node) => metric(node, name, labels)));

  it('killed and started again, empty: readyz and metrics tell, and all of it is there again', async () => {
    const opened = await onEach('holdfast_breaker_opened_total');
    const fallen = await onEach('holdfast_fallback_total');
    await scene.play(
      async (traffic) => {
        await scene.redis.kill();
        await scene.nodes.breakers('open');
        for (const node of scene.nodes.list) {
          const ready = await scene.nodes.readiness(node);
          assert.equal(ready.http, 200, 'a node without Redis is ready');
          assert.equal(ready.tiers.warm, 'down');
        }
        assert.deepEqual(await onEach('holdfast_breaker_state'), [2, 2]);
        assert.deepEqual(await onEach('holdfast_warm_up'), [0, 0]);
        await scene.moves(traffic, 30);
        await scene.redis.launch();
        await scene.nodes.breakers('closed');
        assert.deepEqual(await onEach('holdfast_breaker_state'), [0, 0]);
        assert.deepEqual(await scene.registryFaults(scene.quiet), [], 'it filters again, so everything stands');
      },
      { noFailures: true },
    );
    (await onEach('holdfast_breaker_opened_total')).forEach((count, i) => assert.equal(count, opened[i] + 1, 'it opened once'));
    (await onEach('holdfast_fallback_total')).forEach((count, i) => assert.ok(count > fallen[i], 'fallbacks are counted'));
    assert.ok((await onEach('holdfast_fallback_total', 'breaker_open')).every((count) => count > 0));
  });

  it('frozen and thawed: the breaker opens by the deadline, and closes by itself', async () => {
    await scene.play(
      async (traffic) => {
        scene.redis.freeze();
        try {
          await scene.nodes.breakers('open');
          await scene.moves(traffic, 30);
        } finally {
          scene.redis.thaw();
        }
        await scene.nodes.breakers('closed');
      },
      { noFailures: true },
    );
    assert.ok((await onEach('holdfast_fallback_total', 'timeout')).some((count) => count > 0), 'timeouts are counted');
  });

  it('frozen for a moment only, again and again', async () => {
    await scene.play(
      async (traffic) => {
        for (let i = 0; i < 6; i++) {
          scene.redis.freeze();
          await pause(120);
          scene.redis.thaw();
          await scene.moves(traffic, 3);
        }
      },
      { noFailures: true },
    );
    await scene.nodes.breakers('closed');
  });

  it('hanging, it costs a request little, and nothing once the breaker is open', async () => {
    const event = await scene.organization.event({ layout: layoutOf(block('A', 1, [50, 50])) });
    let next = 0;
    const took = async (count) => {
      const times = [];
      for (let i = 0; i < count; i++) {
        const began = process.hrtime.bigint();
        ok(await event.reserve(scene.nodes.at(0, scene.organization.buyer()), event.seats[next++]), 201);
        times.push(Number(process.hrtime.bigint() - began) / 1e6);
      }
      return times;
    };
    await took(5);
    const usual = await took(15);
    scene.redis.freeze();
    try {
      const first = await took(4); // fewer than open the breaker
      // A request waits 50 ms for Redis at most; the rest of the room is for a busy machine.
      assert.ok(Math.min(...first) < Math.max(...usual) + 50 + 25, `${first} against ${usual}`);
      assert.ok(middle(first) < Math.max(...usual) + 50 + 100, `${first} against ${usual}`);
      await waitFor('the breaker to open', async () => {
        if (next < 80) await took(1);
        return (await scene.nodes.readiness(scene.nodes.list[0])).breaker === 'open';
      });
      const open = await took(15);
      assert.ok(middle(open) < Math.max(...usual) + 25, `${open} against ${usual}`);
    } finally {
      scene.redis.thaw();
    }
    await scene.nodes.breakers('closed');
    await scene.registryRight(event);
  });
});
