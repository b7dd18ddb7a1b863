// SPDX-License-Identifier: Apache-2.0
// Several nodes on one PostgreSQL, without Redis: whatever one of them commits is true on all of them, and nobody can
// win a seat twice by asking elsewhere.

import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';

import { ok, fails } from '../lib/client.mjs';
import { Nodes } from '../lib/nodes.mjs';
import { Postgres } from '../lib/postgres.mjs';
import { openStream } from '../lib/sse.mjs';
import { inParallel, waitFor } from '../lib/wait.mjs';
import { block, layoutOf } from '../lib/world.mjs';

describe('three nodes on one database', () => {
  let postgres;
  let nodes;
  let organization;

  before(async () => {
    postgres = new Postgres(['max_connections=200']);
    nodes = await Nodes.start(3, { postgres });
    organization = await nodes.world.organization();
  });
  after(async () => {
    await nodes.stop();
    const proof = await nodes.verify();
    postgres.destroy();
    assert.equal(proof.status, 0, proof.stdout + proof.stderr);
  });

  it('an event made on one node is sold on the others at once', async () => {
    const event = await organization.event();
    const buyer = organization.buyer();
    const hold = ok(await event.reserve(nodes.at(1, buyer), event.seats[0]), 201);
    assert.equal(hold.status, 'held');
    const again = ok(await event.reserve(nodes.at(2, buyer), event.seats[0]), 200);
    assert.equal(again.hold_id, hold.hold_id, 'the same hold, asked for on another node');
    fails(await event.reserve(nodes.at(2, organization.buyer()), event.seats[0]), 409, 'seat_held_by_another_user');
  });

  it('a hold made on one node is found, extended, paid and released on any other', async () => {
    const event = await organization.event();
    const buyer = organization.buyer();
    const hold = await event.hold(buyer, event.seats[0]);
    const other = await event.hold(nodes.at(1, buyer), event.seats[1]);
    assert.equal(ok(await nodes.at(2, buyer).get(`/api/holds/${hold.hold_id}`)).hold_id, hold.hold_id);
    assert.equal(ok(await nodes.at(2, buyer).get('/api/holds')).length, 2);
    ok(await nodes.at(1, buyer).post(`/api/holds/${hold.hold_id}/extend`));
    ok(await nodes.at(2, buyer).del(`/api/holds/${other.hold_id}`));
    const checkout = ok(await nodes.at(2, buyer).post('/api/checkouts', { event_id: event.id }), 201);
    assert.equal(checkout.seats.length, 1, 'the released one is not in it');
    const paid = ok(await nodes.at(0, buyer).post(`/api/checkouts/${checkout.checkout_id}/complete`, { payment_token: 'tok_ok' }));
    assert.equal(paid.tickets.length, 1);
    for (const index of [0, 1, 2]) {
      const seen = ok(await nodes.at(index, buyer).get(`/api/checkouts/${checkout.checkout_id}`));
      assert.equal(seen.status, 'completed');
      fails(await event.reserve(nodes.at(index, organization.buyer()), event.seats[0]), 409, 'seat_not_available');
    }
  });

  it('hundreds of users over all nodes race for a few seats: each is held once', async () => {
    const event = await organization.event({ layout: layoutOf(block('A', 1, [5])) });
    const asks = Array.from({ length: 300 }, (_, i) => ({ buyer: nodes.at(i % 3, organization.buyer()), seat: event.seats[i % 5] }));
    const answers = await inParallel(asks, 60, ({ buyer, seat }) => event.reserve(buyer, seat));
    const won = answers.filter((answer) => answer.status === 201);
    assert.equal(won.length, 5, JSON.stringify(answers.map((answer) => answer.status)));
    assert.equal(answers.filter((answer) => answer.status === 409).length, 295);
    const [[active]] = nodes.select(`SELECT count(*) FROM seat_holds WHERE event_id = '${event.id}' AND status = 'active'`);
    assert.equal(Number(active), 5);
  });

  it("a block's capacity is exact over all nodes", async () => {
    const event = await organization.event({ layout: layoutOf(block('A', 1, [40], { capacity: 7 })) });
    const asks = Array.from({ length: 40 }, (_, i) => ({ buyer: nodes.at(i % 3, organization.buyer()), seat: event.seats[i] }));
    const answers = await inParallel(asks, 40, ({ buyer, seat }) => event.reserve(buyer, seat));
    const won = answers.filter((answer) => answer.status === 201).length;
    const [[taken]] = nodes.select(`SELECT count(*) FROM seat_holds WHERE event_id = '${event.id}' AND status = 'active'`);
    assert.equal(Number(taken), won);
    assert.ok(won <= 7, `${won} of 7`);
    for (const seat of event.seats) {
      const answer = await event.reserve(nodes.at(1, organization.buyer()), seat);
      assert.ok(answer.status === 201 || answer.status === 409, answer.text);
    }
    const [[full]] = nodes.select(`SELECT count(*) FROM seat_holds WHERE event_id = '${event.id}' AND status = 'active'`);
    assert.equal(Number(full), 7);
  });

  it('streams of any node show what was done on every node', async () => {
    const event = await organization.event();
    const stream = await openStream(nodes.list[2], `${event.path}/stream`, { token: organization.buyer().bearer });
    await stream.waitEvent('snapshot');
    await event.hold(nodes.at(1, organization.buyer()), event.seats[3]);
    await stream.waitSeat(3, 'held');
    stream.close();
  });

  it('a hold runs out once, whichever node it was made on, and never one that was extended elsewhere', async () => {
    const event = await organization.event({ policy: { hold_ttl_seconds: 2, release_grace_seconds: 0, checkout_extension_seconds: 30, hold_max_seconds: 100 } });
    const buyer = organization.buyer();
    const holds = [];
    for (let i = 0; i < 6; i++) holds.push(await event.hold(nodes.at(i % 3, buyer), event.seats[i]));
    ok(await nodes.at(1, buyer).post(`/api/holds/${holds[0].hold_id}/extend`)); // made on node 0
    const rows = () => nodes.select(`SELECT count(*) FILTER (WHERE status = 'expired'), count(*) FILTER (WHERE status = 'active') FROM seat_holds WHERE event_id = '${event.id}'`)[0].map(Number);
    await waitFor('five holds to run out', () => rows()[0] === 5, 30000);
    assert.deepEqual(rows(), [5, 1]);
    const [[audits]] = nodes.select(`SELECT count(*) FROM audit_log WHERE event_id = '${event.id}' AND action = 'seat_hold_expired'`);
    assert.equal(Number(audits), 5, 'each once');
    for (const index of [0, 1, 2]) assert.equal(ok(await nodes.at(index, buyer).get('/api/holds')).length, 1);
  });

  it('policy, prices, layouts and cancellation reach all nodes', async () => {
    const event = await organization.event();
    ok(await nodes.at(1, organization.admin).patch(event.adminPath, { policy: { max_seats_per_user: 1 } }));
    const buyer = organization.buyer();
    await event.hold(nodes.at(2, buyer), event.seats[0]);
    fails(await event.reserve(nodes.at(0, buyer), event.seats[1]), 409, 'hold_limit_reached');
    const draft = await organization.event();
    ok(await nodes.at(2, organization.admin).put(`${draft.adminPath}/layout`, layoutOf(block('B', 1, [4]))));
    const seats = ok(await nodes.at(2, buyer).get(`${draft.path}/seats`));
    assert.equal(seats.length, 4);
    ok(await draft.reserve(nodes.at(1, buyer), seats[0]), 201);
    fails(await nodes.at(0, organization.admin).put(`${draft.adminPath}/layout`, layoutOf(block('C', 1, [4]))), 409, 'layout_in_use');
    ok(await nodes.at(1, organization.admin).patch(draft.adminPath, { status: 'cancelled' }));
    fails(await draft.reserve(nodes.at(2, organization.buyer()), seats[1]), 400, 'event_not_available');
    const [[active]] = nodes.select(`SELECT count(*) FROM seat_holds WHERE event_id = '${draft.id}' AND status = 'active'`);
    assert.equal(Number(active), 0, 'a cancelled event holds nothing');
  });
});
