// SPDX-License-Identifier: Apache-2.0
// Drift of the registry in Redis, planted in both directions: it is found and counted, repaired over the API, by the
// command and by itself, and while it is repaired no held seat looks free and no ended hold comes back.

import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';

import { ok } from '../lib/client.mjs';
import { Registry } from '../lib/redis.mjs';
import { uuid } from '../lib/token.mjs';
import { Scene, Traffic } from '../lib/traffic.mjs';
import { pause, waitFor } from '../lib/wait.mjs';
import { block, layoutOf, metric } from '../lib/world.mjs';

describe('drift of the registry', () => {
  let scene;
  before(async () => {
    scene = await Scene.open();
  });
  after(() => scene.close());

  /** An event with `count` holds, all of them in Redis. */
  const begin = async (count = 8) => {
    const event = await scene.organization.event({ layout: layoutOf(block('A', 1, [8, 8])) });
    const buyer = scene.organization.buyer();
    const holds = [];
    for (const seat of event.seats.slice(0, count)) holds.push(await event.hold(buyer, seat));
    const registry = new Registry(scene.redis, event);
    await scene.registryRight(event, 15000);
    const status = async (index = 0) => ok(await scene.nodes.at(index, scene.organization.admin).get(`${event.adminPath}/registry`));
    return { event, buyer, holds, registry, status };
  };

  const iso = () => new Date(Date.now() + 600000).toISOString().replace(/\.\d+Z$/, 'Z');

  /** Each takes something away or invents something; how many of each direction the status must count at least. */
  const plants = {
    'members lost': { missing: 2, plant: async ({ registry }) => {
      for (const member of (await registry.memberList()).slice(0, 2)) await scene.redis.command('ZREM', registry.members, member.text);
    } },
    'all members lost': { missing: 8, plant: ({ registry }) => scene.redis.command('DEL', registry.members) },
    'locks lost': { missing: 2, plant: ({ registry, holds }) => scene.redis.command('DEL', ...holds.slice(0, 2).map((hold) => registry.lockKey(hold.seat_id))) },
    'hold keys lost': { missing: 1, plant: ({ registry, holds }) => scene.redis.command('DEL', registry.holdKey(holds[2].seat_id)) },
    'metadata lost': { missing: 1, plant: ({ registry, holds }) => scene.redis.command('DEL', registry.metaKey(holds[2])) },
    'bits lost': { missing: 1, plant: ({ registry }) => scene.redis.command('SETBIT', registry.bitsKey('A-1'), 3, 0) },
    'all bits lost': { missing: 1, plant: ({ registry }) => scene.redis.command('DEL', registry.bitsKey('A-1')) },
    'a member of nobody’s': { orphaned: 1, plant: ({ registry, event }) =>
      scene.redis.command('ZADD', registry.members, Math.floor(Date.now() / 1000) + 600, `${event.seats[12].seat_id}:${uuid()}:${uuid()}:${iso()}`) },
    'a member that makes no sense': { orphaned: 1, plant: ({ registry }) => scene.redis.command('ZADD', registry.members, 1, 'nonsense') },
    'an old lock of nobody’s': { orphaned: 1, plant: ({ registry, event }) => registry.plantLock(event.seats[12], { hold: uuid(), user: uuid(), agoMs: 60000 }) },
    'a bit that is not taken': { orphaned: 0, plant: ({ registry }) => scene.redis.command('SETBIT', registry.bitsKey('A-1'), 13, 1) },
    'another hold’s lock on a held seat': { plant: ({ registry, holds }) => registry.plantLock(holds[1].seat_id, { hold: '00000000-0000-7000-8000-000000000001', user: uuid(), agoMs: 60000 }) },
  };

  describe('is found and repaired', { concurrency: 5 }, () => {
    for (const [i, [what, { missing = 0, orphaned = 0, plant }]] of Object.entries(plants).entries()) {
      it(what, async () => {
        const case_ = await begin();
        const before = await case_.status();
        assert.equal(before.consistent, true);
        assert.equal(before.warm, 8);
        await plant(case_);
        const stale = await case_.status(i % 2);
        assert.equal(stale.consistent, false, JSON.stringify(stale));
        assert.equal(stale.status, 'stale');
        assert.equal(stale.store, 8);
        assert.ok((stale.missing ?? 0) >= missing && (stale.orphaned ?? 0) >= orphaned, JSON.stringify(stale));
        if (i % 2 === 0) {
          const told = await scene.nodes.registryCommand('status', 0, '--event', case_.event.id);
          assert.match(told.stdout, /stale/i);
          const repaired = await scene.nodes.registryCommand('reconcile', 0, '--event', case_.event.id);
          assert.equal(repaired.status, 0, repaired.stdout + repaired.stderr);
        } else {
          ok(await scene.nodes.at(1, scene.organization.admin).post(`${case_.event.adminPath}/registry/reconcile`));
        }
        await scene.registryRight(case_.event, 10000);
        assert.equal((await case_.status(1)).warm, 8);
        const drift = await Promise.all(scene.nodes.list.map((node) => metric(node, 'holdfast_registry_drift_total')));
        assert.ok(drift[0] + drift[1] > 0, 'repairs are counted');
      });
    }
  });

  it('under traffic, again and again: no held seat looks free, no ended hold comes back', async () => {
    const { event, holds, registry } = await begin(6);
    const members = new Map((await registry.memberList()).map((member) => [member.hold, member]));
    const busy = Object.assign(Object.create(event), { seats: event.seats.slice(8) });
    const traffic = new Traffic(scene.nodes, busy, { buyers: 6, seed: 3, fates: { pay: 0 } }).start();
    const wrong = [];
    let looking = true;
    const watch = (async () => {
      while (looking) {
        // In one step, so that what is seen was true at one moment.
        const seen = await scene.redis.command('EVAL', `
          local out = {}
          for i, key in ipairs(KEYS) do out[i] = redis.call('EXISTS', key) end
          for i, member in ipairs(ARGV) do out[#out + 1] = redis.call('ZSCORE', KEYS[#KEYS], member) and 1 or 0 end
          return out`, holds.length + 1, ...holds.map((hold) => registry.lockKey(hold.seat_id)), registry.members,
        ...holds.map((hold) => members.get(hold.hold_id).text));
        const bits = await registry.bits('A-1', 6);
        if (seen.some((value) => value !== 1)) wrong.push(`locks and members: ${seen}`);
        if (bits.some((bit) => bit !== 1)) wrong.push(`bits: ${bits}`);
        await pause(2);
      }
    })();
    for (let i = 0; i < 30; i++) {
      ok(await scene.nodes.at(i % 2, scene.organization.admin).post(`${event.adminPath}/registry/reconcile`));
      await pause(50);
    }
    looking = false;
    await watch;
    await traffic.stop();
    assert.deepEqual(wrong.slice(0, 3), []);
    traffic.check();
    for (let i = 0; i < 20; i++) {
      // Nothing that has ended stands there as if it were active, not even for the next moment.
      const active = new Set(scene.activeHolds(event).map((hold) => hold.hold));
      await pause(100);
      const back = (await registry.memberList()).filter((member) => !active.has(member.hold));
      if (i === 19) assert.deepEqual(back.map((member) => member.text), []);
      else if (back.length === 0) break;
    }
    await scene.reconcile(event);
  });

  it('drift that nobody asks about is swept within half a minute', async () => {
    const { event, registry, status } = await begin();
    await plants['all members lost'].plant({ registry });
    await plants['a member of nobody’s'].plant({ registry, event });
    await plants['all bits lost'].plant({ registry });
    await waitFor('the sweep', async () => (await status()).consistent, 45000, 500);
    await scene.registryRight(event, 5000);
  });
});
