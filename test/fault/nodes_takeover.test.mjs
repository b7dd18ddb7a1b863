// SPDX-License-Identifier: Apache-2.0
// Long work of a node that is killed -9 in the middle of it: payments at the gateway, an event half emptied. Another node
// finishes it, once.

import assert from 'node:assert/strict';
import { after, describe, it } from 'node:test';

import { ok } from '../lib/client.mjs';
import { Scene } from '../lib/traffic.mjs';
import { inParallel, waitFor } from '../lib/wait.mjs';
import { block, layoutOf, metric } from '../lib/world.mjs';

describe('what a killed node had begun', { concurrency: 2 }, () => {
  const scenes = [];
  const open = async (options) => {
    const scene = await Scene.open(options);
    scenes.push(scene);
    return scene;
  };
  after(async () => {
    for (const scene of scenes) await scene.close();
  });

  it('with payments at the gateway: another node settles each of them once', async () => {
    const scene = await open();
    const event = await scene.organization.event();
    const paying = [];
    for (const [i, token] of ['tok_slow', 'tok_unknown', 'tok_slow'].entries()) {
      const buyer = scene.organization.buyer();
      const there = scene.nodes.at(1, buyer);
      await event.hold(there, event.seats[2 * i]);
      await event.hold(there, event.seats[2 * i + 1]);
      const checkout = ok(await event.checkout(there), 201);
      const answer = there.post(`/api/checkouts/${checkout.checkout_id}/complete`, { payment_token: token }, { limitMs: 15000 }).catch(() => undefined);
      paying.push({ buyer, id: checkout.checkout_id, answer });
    }
    const statuses = () => scene.nodes.select(`SELECT status FROM checkouts WHERE event_id = '${event.id}'`).flat();
    await waitFor('all to be at the gateway', () => statuses().every((status) => status === 'processing'), 10000, 10);
    await scene.nodes.kill9(1);
    const began = Date.now();
    await waitFor('all to be settled', () => statuses().every((status) => status === 'completed'), 45000, 200);
    assert.ok(Date.now() - began < 40000, 'within about the lease');
    for (const { buyer, id, answer } of paying) {
      await answer;
      await waitFor('the buyer to see it', async () => ok(await buyer.get(`/api/checkouts/${id}`)).status === 'completed', 10000);
      assert.equal(ok(await buyer.get(`/api/checkouts/${id}`)).tickets.length, 2);
      const again = ok(await buyer.post(`/api/checkouts/${id}/complete`, { payment_token: 'tok_ok' }));
      assert.equal(again.tickets.length, 2);
    }
    const [[tickets, seats]] = scene.nodes.select(`SELECT count(*), count(DISTINCT seat_id) FROM tickets WHERE event_id = '${event.id}'`);
    assert.deepEqual([tickets, seats], ['6', '6']);
    const [[completed]] = scene.nodes.select(`SELECT count(*) FROM audit_log WHERE event_id = '${event.id}' AND action = 'checkout_completed'`);
    assert.equal(completed, '3', 'each once');
    assert.ok((await metric(scene.nodes.list[0], 'holdfast_payments_taken_over_total')) >= 3);
  });

  it('while it empties a cancelled event of thousands of holds: another finishes', async () => {
    const scene = await open();
    const event = await scene.organization.event({ layout: layoutOf(block('A', 1, Array(40).fill(50)), block('B', 1, Array(40).fill(50))) });
    await scene.agrees(event, 1);
    const groups = Array.from({ length: 80 }, (_, i) => event.seats.slice(50 * i, 50 * i + 50));
    await inParallel(groups, 4, async (seats, i) => ok(await event.holdMany(scene.nodes.at(i % 2, scene.organization.buyer()), seats), 201));
    const cancelling = scene.nodes.at(1, scene.organization.admin).patch(event.adminPath, { status: 'cancelled' }, { limitMs: 20000 }).catch(() => undefined);
    const left = () => scene.nodes.select(`
      SELECT (SELECT count(*) FROM seat_holds WHERE event_id = '${event.id}' AND status = 'active'),
             (SELECT status FROM events WHERE id = '${event.id}')`)[0];
    await waitFor('it to be cancelled', () => left()[1] === 'cancelled', 20000, 1);
    await scene.nodes.kill9(1);
    await cancelling;
    await waitFor('every hold to be released', () => left()[0] === '0', 45000, 200);
    const [[reasons]] = scene.nodes.select(`SELECT count(DISTINCT cancellation_reason) FROM seat_holds WHERE event_id = '${event.id}'`);
    assert.equal(reasons, '1');
    const [[twice]] = scene.nodes.select(`
      SELECT count(*) FROM (SELECT entity_id FROM audit_log WHERE event_id = '${event.id}' AND action = 'seat_released'
                            GROUP BY entity_id, seat_id HAVING count(*) > 1) AS repeated`);
    assert.equal(twice, '0', 'each once');
    await scene.reconcile(event);
  });
});
