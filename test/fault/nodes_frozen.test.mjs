// SPDX-License-Identifier: Apache-2.0
// A node frozen (SIGSTOP) for longer than a hold lives, and thawed, under traffic: what it believes is old, and the store
// does not take it. It catches up, and nothing it says meanwhile does harm.

import assert from 'node:assert/strict';
import { after, describe, it } from 'node:test';

import { ok } from '../lib/client.mjs';
import { Scene } from '../lib/traffic.mjs';
import { pause, waitFor, waitUntilUnix } from '../lib/wait.mjs';

const SHORT = { hold_ttl_seconds: 3, release_grace_seconds: 0, checkout_extension_seconds: 60, hold_max_seconds: 600 };

describe('a node frozen', { concurrency: 2 }, () => {
  const scenes = [];
  const open = async (options) => {
    const scene = await Scene.open(options);
    scenes.push(scene);
    return scene;
  };
  after(async () => {
    for (const scene of scenes) {
      for (const node of scene.nodes.alive()) node.child.kill('SIGCONT');
      await scene.close();
    }
  });

  for (const warm of [true, false]) {
    it(`for longer than holds live, under traffic, ${warm ? 'with' : 'without'} Redis`, async () => {
      const scene = await open({ warm });
      await scene.play(async (traffic) => {
        scene.nodes.freeze(1);
        await pause(8000); // holds of 4 s and 1 s of grace end meanwhile, and their seats are had by others
        await scene.moves(traffic, 10);
        scene.nodes.thaw(1);
        traffic.targets = [scene.nodes.list[1]]; // everybody asks the one that just woke
        await scene.moves(traffic, 20);
        traffic.targets = [...scene.nodes.list];
      });
    });
  }

  it('what was asked of it before is answered truly when it wakes', async () => {
    const scene = await open();
    const event = await scene.organization.event({ policy: SHORT });
    const there = (caller) => scene.nodes.at(1, caller);
    await scene.agrees(event, 1);
    const old = scene.organization.buyer();
    const hold = await event.hold(there(old), event.seats[0]);
    const kept = await event.hold(there(old), event.seats[1]);
    scene.nodes.freeze(1);
    ok(await old.post(`/api/holds/${kept.hold_id}/extend`)); // while the node that made it sleeps
    const asked = [
      there(old).post(`/api/holds/${hold.hold_id}/extend`),
      there(old).post('/api/checkouts', { event_id: event.id, hold_ids: [hold.hold_id] }),
      event.reserve(there(scene.organization.buyer()), event.seats[2]),
    ];
    await waitUntilUnix(hold.held_until_unix + 0.5);
    const heir = scene.organization.buyer();
    const others = [];
    for (const seat of [event.seats[0], event.seats[2]]) {
      const won = await waitFor('the seat to be had', async () => {
        const answer = await event.reserve(heir, seat);
        return answer.status === 201 ? answer.body.data : undefined;
      }, 15000);
      others.push(ok(await heir.post(`/api/holds/${won.hold_id}/extend`)));
    }
    scene.nodes.thaw(1);
    const answers = await Promise.all(asked);
    for (const answer of answers) assert.ok(answer.status >= 400 && answer.status < 600, `an answer from the past: ${answer.status} ${answer.text}`);
    await scene.agrees(event, 1);
    const active = new Map(scene.activeHolds(event).map((row) => [row.seat, row.hold]));
    assert.equal(active.get(event.seats[1].seat_id), kept.hold_id, 'what was extended elsewhere is not ended by who slept');
    for (const other of others) assert.equal(active.get(other.seat_id), other.hold_id);
    assert.equal(active.size, 3);
    await scene.reconcile(event);
  });
});
