// SPDX-License-Identifier: Apache-2.0
// The distributed mode: nodes that share the work through Kafka, with PostgreSQL and Redis. Plain `make test` runs this on
// librdkafka's mock cluster; with HOLDFAST_TEST_KAFKA=1 or 3 it is that many brokers of a real Apache Kafka.

import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';

import { ok } from '../lib/client.mjs';
import { anyKafka, getMessages } from '../lib/kafka.mjs';
import { nodeName } from '../lib/nodes.mjs';
import { openStream } from '../lib/sse.mjs';
import { Scene } from '../lib/traffic.mjs';
import { uuid } from '../lib/token.mjs';
import { waitFor } from '../lib/wait.mjs';
import { block, layoutOf, metric } from '../lib/world.mjs';

const NODE_COUNT = 3;
const SECTIONS = [...'ABCDEFGHIJ'];
const BLOCKS = SECTIONS.flatMap((section) => [1, 2, 3, 4, 5].map((subsection) => `${section}-${subsection}`));
/** Blocks all around the partitions, however these are shared: neighbours may be one node's. */
const WIDE = layoutOf(...BLOCKS.map((name) => block(name[0], Number(name[2]), [12])));
// The mock's groups take longer to move a partition than a reserve may wait, and do not survive members that come and go at
// once (an assertion of librdkafka 2.0's mock).
const REAL_ONLY = { skip: (process.env.HOLDFAST_TEST_KAFKA ?? '') === '' && 'needs a real Kafka' };

describe('nodes that share the work', () => {
  let scene;
  let event;
  const person = () => scene.organization.buyer();
  const at = (index, caller) => scene.nodes.at(index, caller);

  before(async () => {
    const names = Array.from({ length: NODE_COUNT + 1 }, (_, i) => nodeName(i));
    scene = await Scene.open({ nodes: NODE_COUNT, kafka: await anyKafka({ nodes: names }) });
    event = await scene.organization.event({ layout: WIDE, policy: { max_seats_per_user: 0, rate_limit_holds: 0 } });
    for (let i = 0; i < NODE_COUNT; i++) await scene.agrees(event, i);
  });
  after(() => scene?.close());

  /** A seat of each block, the first that nobody of this file has. */
  const taken = new Set();
  const seatOf = (wanted = () => true) => {
    const seat = event.seats.find((one) => !taken.has(one.seat_id) && wanted(one));
    taken.add(seat.seat_id);
    return seat;
  };

  /** What a 202 comes to, asked for at that node; any other answer is one. */
  const settled = (index, caller, answer) => waitFor(`the answer at ${answer.headers.location}`, async () => {
    const later = answer.status === 202 ? await at(index, caller).get(answer.headers.location) : answer;
    return later.status === 202 ? undefined : later;
  }, 60000, 100);

  it('decide each block at one of them, and every node is asked and decides', async () => {
    const before = await Promise.all(scene.nodes.list.map((node) => metric(node, 'holdfast_order_taken_total')));
    for (let i = 0; i < 24; i++) {
      const answer = await event.reserve(at(i % NODE_COUNT, person()), seatOf((one) => one.block === `${SECTIONS[i % 10]}-${1 + (i % 5)}`));
      assert.equal(answer.status, 201, answer.text);
    }
    const after = await Promise.all(scene.nodes.list.map((node) => metric(node, 'holdfast_order_taken_total')));
    assert.equal(after.reduce((a, b) => a + b) - before.reduce((a, b) => a + b), 24, 'each command was taken once');
    for (let i = 0; i < NODE_COUNT; i++) assert.ok(after[i] > before[i], `node ${i} decided nothing`);
  });

  it('answer the whole life of a hold as one node would', async () => {
    const buyer = person();
    const seat = seatOf();
    const hold = ok(await event.reserve(at(0, buyer), seat), 201);
    const again = await event.reserve(at(1, buyer), seat);
    assert.equal(again.status, 200, again.text);
    assert.equal(again.body.data.hold_id, hold.hold_id);
    const other = await event.reserve(at(2, person()), seat);
    assert.equal(other.status, 409);
    assert.equal(other.body.error.code, 'seat_held_by_another_user');
    assert.ok(other.body.error.details.expires_at, 'details travel too');
    assert.equal((await at(2, buyer).send('POST', `/api/holds/${hold.hold_id}/extend`, {})).status, 200);
    const checkout = ok(await at(1, buyer).post('/api/checkouts', { event_id: event.id, hold_ids: [hold.hold_id] }), 201);
    assert.equal(checkout.seats.length, 1);
    const paid = await at(0, buyer).post(`/api/checkouts/${checkout.checkout_id}/complete`, { payment_token: 'tok_ok' });
    assert.equal(paid.status, 200, paid.text);
    assert.equal(paid.body.data.tickets.length, 1);
    const twice = await at(2, buyer).post(`/api/checkouts/${checkout.checkout_id}/complete`, { payment_token: 'tok_ok' });
    assert.deepEqual(twice.body.data.tickets, paid.body.data.tickets);
  });

  it('release, and release again', async () => {
    const buyer = person();
    const hold = ok(await event.reserve(at(0, buyer), seatOf()), 201);
    for (const index of [1, 2, 0]) {
      const answer = await at(index, buyer).send('DELETE', `/api/holds/${hold.hold_id}`);
      assert.equal(answer.status, 200, answer.text);
    }
  });

  it('hold several seats of blocks that different nodes have: all or none', async () => {
    const seats = ['A-1', 'E-4', 'I-5'].map((name) => seatOf((one) => one.block === name));
    const { holds } = ok(await event.holdMany(at(0, person()), seats), 201);
    assert.equal(holds.length, 3);
    const more = ['B-2', 'D-5'].map((name) => seatOf((one) => one.block === name));
    const refused = await event.holdMany(at(1, person()), [...more, seats[2]]);
    assert.equal(refused.status, 409, refused.text);
    assert.deepEqual(refused.body.error.details.seats.map((one) => one.seat_id), [seats[2].seat_id]);
    const free = ok(await at(2, person()).get(`${event.path}/seats`)).filter((one) => more.some((seat) => seat.seat_id === one.seat_id));
    assert.ok(free.every((one) => one.status === 'available'));
  });

  it('find the best available over blocks of several nodes', async () => {
    const answer = await at(1, person()).post(`${event.path}/holds`, { quantity: 4, section: 'E' });
    assert.equal(answer.status, 201, answer.text);
    assert.equal(answer.body.data.holds.length, 4);
    assert.ok(answer.body.data.explanation.adjacent);
    for (const hold of answer.body.data.holds) taken.add(hold.seat_id);
  });

  it('take the same Idempotency-Key once, wherever it is asked for', async () => {
    const buyer = person();
    const seat = seatOf();
    const key = uuid();
    const path = `${event.path}/seats/${seat.seat_id}/reserve`;
    const answers = [];
    for (const index of [0, 1, 2]) answers.push(await at(index, buyer).send('POST', path, {}, { key }));
    for (const answer of answers) assert.deepEqual([answer.status, answer.body.data.hold_id], [201, answers[0].body.data.hold_id]);
    const reused = await at(1, buyer).send('POST', path, { source: 'scanner' }, { key });
    assert.equal(reused.body.error.code, 'idempotency_key_reused');
  });

  it('give one seat to one of many, asked on all nodes at once', async () => {
    const seat = seatOf();
    const answers = await Promise.all(Array.from({ length: 60 }, (_, i) => event.reserve(at(i % NODE_COUNT, person()), seat)));
    assert.equal(answers.filter((answer) => answer.status === 201).length, 1);
    assert.equal(answers.filter((answer) => answer.body.error?.code === 'seat_held_by_another_user').length, 59);
    assert.equal(scene.activeHolds(event).filter((hold) => hold.seat === seat.seat_id).length, 1);
  });

  it('decide what a block is asked for in the order in which it was sent, whoever has a key that must be looked for', async () => {
    const FROZEN = 2;
    const takenBy = (index) => metric(scene.nodes.list[index], 'holdfast_order_taken_total');
    const isOfFrozen = async (name) => {
      const before = await takenBy(FROZEN);
      ok(await event.reserve(at(0, person()), seatOf((one) => one.block === name)), 201);
      return (await takenBy(FROZEN)) > before;
    };
    let name;
    for (const one of BLOCKS) name ??= (await isOfFrozen(one)) ? one : undefined;
    const [owner, first, second, third] = Array.from({ length: 4 }, person);
    const [contested, given] = [0, 1].map(() => seatOf((one) => one.block === name));
    const hold = ok(await event.reserve(at(0, owner), given), 201);
    const reserve = (buyer, seat, key) => () => event.reserve(at(0, buyer), seat, {}, { key, limitMs: 20000 });
    const release = (key) => () => at(0, owner).del(`/api/holds/${hold.hold_id}`, { key, limitMs: 20000 });
    const asked = [
      [first, reserve(first, contested, uuid()), 201],
      [second, reserve(second, contested), 409],
      [third, reserve(third, contested, uuid()), 409],
      [first, reserve(first, given, uuid()), 409],
      [owner, release(uuid()), 200],
      [second, reserve(second, given), 201],
    ];
    const answers = [];
    scene.nodes.freeze(FROZEN);
    try {
      for (const [, ask] of asked) {
        const sent = await metric(scene.nodes.list[0], 'holdfast_order_sent_total');
        answers.push(ask());
        await waitFor('Kafka to have it', async () => (await metric(scene.nodes.list[0], 'holdfast_order_sent_total')) > sent);
      }
    } finally {
      scene.nodes.thaw(FROZEN);
    }
    const told = await Promise.all(answers.map(async (answer, i) => settled(0, asked[i][0], await answer)));
    assert.deepEqual(told.map((answer) => answer.status), asked.map(([, , status]) => status));
  });

  it('say 202 while the node that decides is frozen, and the answer later: by GET on any node, and on the stream', REAL_ONLY, async () => {
    const buyer = person();
    scene.nodes.freeze(2);
    let pending;
    let stream;
    try {
      stream = await openStream(scene.nodes.list[0], '/api/stream', { token: buyer.bearer });
      for (const name of BLOCKS) {
        if (pending !== undefined) break;
        const answer = await event.reserve(at(0, buyer), seatOf((one) => one.block === name), {}, { limitMs: 20000 });
        if (answer.status === 202) pending = answer;
        else assert.equal(answer.status, 201, answer.text);
      }
      assert.ok(pending, 'the frozen node had no block');
      assert.match(pending.headers.location, /^\/api\/commands\//);
      assert.equal(pending.body.data.status, 'pending');
      assert.equal((await at(1, buyer).get(pending.headers.location)).status, 202);
      assert.equal((await at(1, person()).get('/api/commands/018f7f4e-6a5b-7c3d-9e2f-0a1b2c3d4e01')).status, 404);
      // Its partitions go to the others after a while, and what waited is decided there.
      const answer = await settled(1, buyer, pending);
      assert.equal(answer.status, 201, answer.text);
      const news = await stream.waitEvent('command_settled', (said) => said.location === pending.headers.location);
      assert.equal(news.json.status, 201);
      assert.deepEqual(news.json.hold_ids, [answer.body.data.hold_id]);
      assert.equal((await at(0, buyer).get(pending.headers.location)).body.data.hold_id, answer.body.data.hold_id);
      assert.equal((await at(1, person()).get(pending.headers.location)).status, 404, 'it is nobody else’s');
    } finally {
      scene.nodes.thaw(2);
      stream?.close();
    }
    await scene.nodes.shared();
    for (let i = 0; i < NODE_COUNT; i++) assert.equal((await event.reserve(at(i, person()), seatOf())).status, 201);
  });

  it('tell other services through a topic, in order for each seat', async () => {
    const buyer = person();
    const seat = seatOf();
    const hold = ok(await event.reserve(at(0, buyer), seat), 201);
    assert.equal((await at(1, buyer).send('DELETE', `/api/holds/${hold.hold_id}`)).status, 200);
    const told = await waitFor('both events', () => {
      const found = getMessages(scene.kafka, 'holdfast.events').filter((message) => message.key === seat.seat_id);
      return found.length >= 2 ? found : undefined;
    }, 60000, 500);
    const types = [...new Set(told.map((message) => JSON.parse(message.value).type))];
    assert.deepEqual(types.map((type) => type.replace(/^.*\./, '')), ['SeatReserved', 'SeatReleased']);
  });

  it('keep every promise while nodes are frozen, killed and added, brokers and Redis are killed', REAL_ONLY, async () => {
    const traffic = await scene.play(async (buyers) => {
      scene.nodes.freeze(0);
      buyers.targets = [scene.nodes.list[1], scene.nodes.list[2]];
      await scene.moves(buyers, 15);
      scene.nodes.thaw(0);
      buyers.targets = [...scene.nodes.list];
      await scene.moves(buyers, 15);
      await scene.nodes.kill9(1);
      await scene.moves(buyers, 15);
      await scene.redis.kill();
      await scene.moves(buyers, 10);
      await scene.redis.launch();
      if (scene.kafka.brokers === 3) {
        scene.kafka.kill(2);
        await scene.moves(buyers, 20);
        scene.kafka.again(2);
        scene.kafka.freeze(1);
        await scene.moves(buyers, 10);
        scene.kafka.thaw(1);
      }
      await scene.nodes.revive(1);
      await scene.nodes.add();
      buyers.targets = [...scene.nodes.list];
      await scene.moves(buyers, 20);
    });
    assert.deepEqual(traffic.internalErrors(), [], traffic.report());
    await scene.nodes.shared();
  });
});
