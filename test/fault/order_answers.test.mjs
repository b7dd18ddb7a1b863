// SPDX-License-Identifier: Apache-2.0
// Answers that take too long, where commands go through Kafka: the node that decides is frozen, so that the one that was
// asked says 202 and where to ask. Then it wakes up: the answer is the same by GET on any node, and the stream tells it.

import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';

import { Caller, fails, ok, send } from '../lib/client.mjs';
import { anyKafka } from '../lib/kafka.mjs';
import { makeDatabase, Postgres } from '../lib/postgres.mjs';
import { Server } from '../lib/server.mjs';
import { openStream } from '../lib/sse.mjs';
import { saysNothingOf, UUID7 } from '../lib/shape.mjs';
import { uuid } from '../lib/token.mjs';
import { waitFor } from '../lib/wait.mjs';
import { block, layoutOf, metric, World } from '../lib/world.mjs';

const BLOCKS = 10; // far apart, in even and odd partitions: whichever way they are shared, both nodes have some
const SEATS = 4; // of each block
const NODES = ['edge', 'owner'];

describe('answers that take long', () => {
  let postgres;
  let kafka;
  const nodes = [];
  let organization;
  let event;
  let buyer;

  before(async () => {
    postgres = new Postgres();
    kafka = await anyKafka({ nodes: NODES });
    const store = makeDatabase(postgres.url);
    for (const name of NODES) {
      // A frozen node keeps its partitions for longer than callers are let wait: nobody else is to answer in its place.
      const args = ['--order', `${kafka.url}?session.timeout.ms=15000`, '--node-name', name, ...(kafka.isMock ? ['--order-make-topics', 'off'] : [])];
      const node = new Server({ store, secret: nodes[0]?.secret, args });
      await node.launch();
      nodes.push(node);
    }
    for (const node of nodes) {
      await waitFor('both nodes to have partitions', async () => (await metric(node, 'holdfast_order_partitions')) > 0, 60000, 50);
    }
    organization = await new World(nodes[0]).organization();
    event = await organization.event({ layout: layoutOf(...Array.from({ length: BLOCKS }, (_, i) => block(String.fromCharCode(65 + i), 1 + (i % 2), [SEATS]))) });
    buyer = organization.buyer();
  });
  after(async () => {
    for (const node of nodes) {
      node.child.kill('SIGCONT');
      await node.stop();
    }
    await kafka.stop();
    postgres.destroy();
  });

  const at = (node, caller) => new Caller(node, caller.bearer, { org: caller.org, user: caller.user, role: caller.role });
  const freeze = (node) => node.child.kill('SIGSTOP');
  const thaw = (node) => node.child.kill('SIGCONT');
  const settled = (caller, location) => waitFor('the answer', async () => {
    const answer = await caller.get(location);
    return answer.status === 202 ? undefined : answer;
  }, 60000, 50);
  const news = (stream, id) => stream.of('command_settled').find(({ json }) => json.command_id === id)?.json;

  /** A seat of every block, `row` seats in; asked for at the first node while the second is frozen: those that say 202. */
  const whileFrozen = async (asks) => {
    freeze(nodes[1]);
    try {
      const answers = await Promise.all(Array.from({ length: BLOCKS }, (_, i) => asks(i)));
      return answers.map((answer, index) => ({ answer, index })).filter(({ answer }) => answer.status === 202);
    } finally {
      thaw(nodes[1]);
    }
  };

  it('says 202 and where to ask; then the hold is told by GET on every node, and on the stream', async () => {
    const stream = await openStream(nodes[0], '/api/stream', { token: buyer.bearer });
    const eventStream = await openStream(nodes[0], `${event.path}/stream`, { token: buyer.bearer });
    const late = await whileFrozen((i) => event.reserve(buyer, event.seats[SEATS * i], {}, i % 2 === 0 ? undefined : { key: `first-${i}` }));
    assert.ok(late.length > 0 && late.length < BLOCKS, `${late.length} of ${BLOCKS} were late: both nodes have partitions`);
    for (const { answer, index } of late) {
      const { command_id: id, location, status } = answer.body.data;
      assert.match(id, UUID7);
      assert.equal(status, 'pending');
      assert.equal(answer.headers.location, location);
      assert.match(location, index % 2 === 0 ? /^\/api\/commands\/[0-9a-f-]{36}$/ : /^\/api\/commands\/[0-9a-f-]{36}\.[0-9a-f]{64}$/);
      const told = ok(await settled(buyer, location), 201);
      assert.equal(told.seat_id, event.seats[SEATS * index].seat_id);
      assert.deepEqual(ok(await settled(at(nodes[1], buyer), location), 201), told, 'the other node says the same');
      for (const heard of [stream, eventStream]) {
        await heard.wait('the news of it', () => news(heard, id));
        assert.deepEqual(news(heard, id), { command_id: id, location, status: 201, hold_ids: [told.hold_id] });
      }
      assert.ok(ok(await buyer.get('/api/holds')).some((hold) => hold.hold_id === told.hold_id));
    }
    assert.ok((await metric(nodes[0], 'holdfast_order_pending_answers_total')) >= late.length);
    stream.close();
    eventStream.close();
  });

  it('a refusal that comes late is told with its code and details', async () => {
    const [holder, rival] = [organization.buyer(), organization.buyer()];
    for (let i = 0; i < BLOCKS; i++) await event.hold(holder, event.seats[SEATS * i + 1]);
    const stream = await openStream(nodes[0], '/api/stream', { token: rival.bearer });
    const late = await whileFrozen((i) => event.reserve(rival, event.seats[SEATS * i + 1]));
    assert.ok(late.length > 0);
    for (const { answer } of late) {
      const { command_id: id, location } = answer.body.data;
      for (const node of nodes) {
        const refused = await settled(at(node, rival), location);
        fails(refused, 409, 'seat_held_by_another_user');
        assert.ok(refused.body.error.details.expires_in_seconds > 0);
      }
      await stream.wait('the news of it', () => news(stream, id));
      assert.deepEqual(news(stream, id), { command_id: id, location, status: 409, code: 'seat_held_by_another_user', hold_ids: [] });
    }
    stream.close();
  });

  it('the request again with its key, at the other node, is answered as the first: one hold', async () => {
    const caller = organization.buyer();
    const late = await whileFrozen((i) => event.reserve(caller, event.seats[SEATS * i + 2], {}, { key: `again-${i}` }));
    assert.ok(late.length > 0);
    for (const { answer, index } of late) {
      const first = ok(await settled(caller, answer.headers.location), 201);
      const again = ok(await event.reserve(at(nodes[1], caller), event.seats[SEATS * index + 2], {}, { key: `again-${index}` }), 201);
      assert.equal(again.hold_id, first.hold_id);
    }
    assert.equal(ok(await caller.get('/api/holds')).length, BLOCKS);
  });

  it('a checkout, too; and nobody else is told', async () => {
    const callers = Array.from({ length: BLOCKS }, () => organization.buyer());
    for (let i = 0; i < BLOCKS; i++) await event.hold(callers[i], event.seats[SEATS * i + 3]);
    const late = await whileFrozen((i) => event.checkout(callers[i], {}, { key: uuid() }));
    assert.ok(late.length > 0);
    const stranger = await new World(nodes[0]).organization();
    for (const { answer, index } of late) {
      const { location } = answer.body.data;
      const checkout = ok(await settled(callers[index], location), 201);
      assert.equal(checkout.seats[0].seat_id, event.seats[SEATS * index + 3].seat_id);
      assert.equal(ok(await organization.agent().get(location), 201).checkout_id, checkout.checkout_id);
      for (const node of nodes) {
        fails(await at(node, organization.buyer()).get(location), 404, 'command_not_found');
        // A young id that no node knows may be on its way still: that much, and no more, is said to a stranger.
        const strange = await at(node, stranger.admin).get(location);
        assert.ok([202, 404].includes(strange.status), strange.text);
        saysNothingOf(strange.text, checkout.checkout_id, event.id, callers[index].user);
      }
    }
  });

  const readiness = (node, status) => waitFor(`readiness ${status}`, async () => {
    const answer = await send(`${node.url}/readyz`);
    return answer.status === status ? answer.body.data : undefined;
  }, 60000, 50);

  it('readiness says where commands go, and whether a broker is there; reads need none', async () => {
    for (const node of nodes) assert.deepEqual((await readiness(node, 200)).order, { kind: 'kafka', up: true });
    if (!kafka.isMock) return; // a real one is taken down elsewhere
    await kafka.down(1);
    for (const node of nodes) {
      const seen = await readiness(node, 503);
      assert.deepEqual([seen.status, seen.store.up, seen.order], ['unavailable', true, { kind: 'kafka', up: false }]);
      assert.ok(ok(await at(node, buyer).get('/api/holds')).length > 0);
    }
    const refused = await event.reserve(organization.buyer(), event.seats[0]);
    assert.ok([202, 503, 504].includes(refused.status), refused.text);
    await kafka.up(1);
    for (const node of nodes) assert.deepEqual((await readiness(node, 200)).order, { kind: 'kafka', up: true });
  });
});
