// SPDX-License-Identifier: Apache-2.0
// Nodes killed -9, with PostgreSQL and Redis: under traffic, with locks taken and nothing committed, between a commit and
// its keys. Nothing that was acknowledged is lost, and what it left behind is no harm.

import assert from 'node:assert/strict';
import { after, describe, it } from 'node:test';

import { Session } from '../lib/postgres.mjs';
import { Registry } from '../lib/redis.mjs';
import { Scene } from '../lib/traffic.mjs';
import { waitFor } from '../lib/wait.mjs';

describe('a node killed', { concurrency: 3 }, () => {
  const scenes = [];
  const open = async (options) => {
    const scene = await Scene.open(options);
    scenes.push(scene);
    return scene;
  };
  const sessions = [];
  after(async () => {
    for (const session of sessions) session.child.kill();
    for (const scene of scenes) await scene.close();
  });

  it('under traffic, and started again, more than once', async () => {
    const scene = await open();
    const traffic = await scene.play(async (buyers) => {
      for (const index of [1, 0]) {
        await scene.nodes.kill9(index);
        await scene.moves(buyers, 15); // those who ask the dead one try another
        await scene.nodes.revive(index);
        await scene.moves(buyers, 15);
      }
    });
    const failed = [...traffic.counts.keys()].filter((name) => / 50[04]/.test(name));
    assert.deepEqual(failed.filter((name) => !name.includes('outcome_unknown') && !name.includes('seat_reservation_failed')), [], traffic.report());
  });

  it('with locks taken and nothing committed: the seats are free again within seconds', async () => {
    const scene = await open();
    const event = await scene.organization.event();
    const registry = new Registry(scene.redis, event);
    await scene.agrees(event, 1);
    const buyer = scene.nodes.at(1, scene.organization.buyer());
    // So that the buyer is known: a first request registers its user, which would wait before any lock is asked for.
    await event.hold(buyer, event.seats[10]);
    const blocker = new Session(scene.nodes.store);
    sessions.push(blocker);
    await blocker.do('BEGIN; LOCK TABLE batches IN ACCESS EXCLUSIVE MODE;');
    const seats = event.seats.slice(0, 3);
    const lost = event.holdMany(buyer, seats, {}, { limitMs: 5000 }).catch(() => 'no answer');
    await waitFor('the locks', async () => (await Promise.all(seats.map((seat) => registry.lock(seat)))).every((lock) => lock !== null), 5000, 5);
    await scene.nodes.kill9(1);
    await blocker.do("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid() AND wait_event_type = 'Lock';");
    await blocker.do('ROLLBACK;');
    await blocker.end();
    assert.equal(await lost, 'no answer');
    assert.equal(scene.activeHolds(event).length, 1, 'nothing was committed');
    assert.ok((await registry.lock(seats[0])) !== null, 'the dead node’s lock stands');
    const began = Date.now();
    for (const seat of seats) {
      await waitFor('the seat to be had', async () => {
        const answer = await event.reserve(scene.organization.buyer(), seat);
        assert.ok(answer.status === 201 || answer.status === 409, answer.text);
        return answer.status === 201;
      }, 20000, 100);
    }
    assert.ok(Date.now() - began < 12000, `a lock that nobody knows lasts 5 s, not ${Date.now() - began} ms`);
    await scene.reconcile(event);
  });

  it('between its commit and its keys: a sweep of another node makes them good', async () => {
    const scene = await open();
    const event = await scene.organization.event();
    await scene.agrees(event, 1);
    scene.redis.freeze();
    const holds = [];
    for (const seat of event.seats.slice(0, 4)) holds.push(await event.hold(scene.nodes.at(1, scene.organization.buyer()), seat));
    await scene.nodes.kill9(1);
    scene.redis.thaw();
    await scene.registryRight(event, 50000);
    const registry = new Registry(scene.redis, event);
    for (const hold of holds) assert.equal((await registry.lock(hold.seat_id)).hold_id, hold.hold_id);
  });
});
