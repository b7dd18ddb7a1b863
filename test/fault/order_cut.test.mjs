// SPDX-License-Identifier: Apache-2.0
// One node cut off from Kafka while it still runs, reaches PostgreSQL and Redis, and has a command in hand: the others take
// its partitions over, what it still tries to write is refused, and when the network heals it joins again. Every node has
// a proxy of its own before the brokers (test/lib/kafka_proxy.mjs).

import assert from 'node:assert/strict';
import { connect, createServer } from 'node:net';
import { after, before, describe, it } from 'node:test';

import { failsWithOneOf, ok } from '../lib/client.mjs';
import { PARTITION_COUNT, RealKafka } from '../lib/kafka.mjs';
import { FETCH, HEARTBEAT, KafkaProxy, PRODUCE } from '../lib/kafka_proxy.mjs';
import { Session } from '../lib/postgres.mjs';
import { Scene } from '../lib/traffic.mjs';
import { uuid } from '../lib/token.mjs';
import { waitFor } from '../lib/wait.mjs';
import { block, layoutOf, metric } from '../lib/world.mjs';

const NODE_COUNT = 3;
const CUT = 0; // the node that is cut off
const OTHERS = [1, 2];
const BLOCKS = 10; // far apart: whichever way the partitions are shared, every node has some of them
const SEATS = 8; // of each block
const LAYOUT = layoutOf(...Array.from({ length: BLOCKS }, (_, i) => block(String.fromCharCode(65 + i), 1 + (i % 2), [SEATS])));
// The last heartbeat before the cut is answered so late that the node believes for as long after the brokers have given its
// partitions away that they are its own. Its clients must be as patient as that.
const ANSWER_MS = 8000;
// Of a command that nobody has heard of, a node says for twice its deadline that it may still come: 80 s with sanitizers.
const SETTLED_MS = 120000;
const QUERY = '?session.timeout.ms=12000&socket.timeout.ms=11000';
const BROKERS = process.env.HOLDFAST_TEST_KAFKA ?? '';
const REAL_ONLY = { skip: !/^[0-9]+$/.test(BROKERS) && 'needs a real Kafka of its own' };

describe('the proxy that cuts', () => {
  // The other test is worth as much as this is true; it needs no Kafka.
  it('tells nobody, lets the last answer come late, and what was held back when it heals', async () => {
    const heard = [];
    const broker = createServer((socket) => socket.on('error', () => {}).on('data', (data) => {
      heard.push(data.readInt16BE(4));
      socket.write('answer ');
    }));
    await new Promise((done) => broker.listen(0, '127.0.0.1', done));
    const proxy = await KafkaProxy.listen(1);
    proxy.targets = [broker.address().port];
    const node = () => {
      const socket = connect(proxy.ports[0], '127.0.0.1').setEncoding('utf8');
      const client = { said: '', send: (kind) => socket.write(Buffer.from([0, 0, 0, 2, 0, kind])) };
      socket.on('error', () => {}).on('data', (text) => (client.said += text)).on('close', () => (client.closed = true));
      return client;
    };
    const holds = () => [...proxy.links].reduce((count, link) => count + link.held.length, 0);
    try {
      const old = node();
      old.send(PRODUCE);
      await waitFor('an answer', () => old.said === 'answer ');
      const cut = proxy.cutAfter(HEARTBEAT, 300);
      old.send(HEARTBEAT);
      await cut;
      const fresh = node();
      old.send(PRODUCE);
      fresh.send(FETCH);
      await waitFor('both to be held back', () => holds() === 2);
      await waitFor('the late answer', () => old.said === 'answer answer ');
      assert.deepEqual(heard, [PRODUCE, HEARTBEAT]);
      assert.ok(fresh.said === '' && !old.closed && !fresh.closed, 'somebody was told');
      proxy.heal();
      await waitFor('what was held back to arrive', () => heard.length === 4 && old.closed && fresh.closed);
      assert.deepEqual(heard.slice(2).sort(), [PRODUCE, FETCH]);
      assert.equal(old.said + fresh.said, 'answer answer ', 'connections of before say nothing more');
      const next = node();
      next.send(FETCH);
      await waitFor('an answer again', () => next.said === 'answer ');
    } finally {
      proxy.close();
      broker.close();
    }
  });
});

describe('a node cut off from Kafka', REAL_ONLY, () => {
  let scene;
  let event;
  let session;
  const person = () => scene.organization.buyer();
  const at = (index, caller) => scene.nodes.at(index, caller);
  const sum = async (name, which = [CUT, ...OTHERS]) => (await Promise.all(which.map((index) => metric(scene.nodes.list[index], name)))).reduce((a, b) => a + b);
  const ofCut = (name) => sum(name, [CUT]);
  const had = (which) => sum('holdfast_order_partitions', which);

  before(async () => {
    const kafka = await RealKafka.behindProxies({ brokers: Number(BROKERS), nodes: NODE_COUNT, query: QUERY });
    scene = await Scene.open({ nodes: NODE_COUNT, kafka });
    event = await scene.organization.event({ layout: LAYOUT, policy: { hold_ttl_seconds: 600 } });
    for (let i = 0; i < NODE_COUNT; i++) await scene.agrees(event, i);
  });
  after(async () => {
    session?.child.kill();
    await scene?.close();
  });

  /** The first seat of a block that nobody of this file has. */
  const taken = new Set();
  const seatOf = (name) => {
    const seat = event.seats.find((one) => !taken.has(one.seat_id) && one.block === name);
    taken.add(seat.seat_id);
    return seat;
  };

  /** Asks the node that is cut off, which must say that it does not know yet, or that nothing was done. */
  const asked = [];
  const askCut = async (what) => {
    const answer = await what.send(at(CUT, what.buyer), { key: what.key });
    if (answer.status === 503) failsWithOneOf(answer, [503, 'store_unavailable'], [503, 'overloaded']);
    else assert.equal(answer.status, 202, answer.text);
    asked.push({ ...what, answer });
  };
  const reserving = (name, key) => {
    const seat = seatOf(name);
    return { buyer: person(), key, seat, success: 201, before: [], after: ['active'], send: (caller, options) => event.reserve(caller, seat, {}, options) };
  };
  const releasing = (buyer, hold, key) => ({
    buyer, key, seat: hold, success: 200, before: ['active'], after: ['cancelled'], send: (caller, options) => caller.del(`/api/holds/${hold.hold_id}`, options),
  });

  /** What a 202 comes to, asked for at that node; any other answer is one. */
  const settled = (index, { buyer, answer }) => waitFor(`the answer at ${answer.headers.location}`, async () => {
    const later = answer.status === 202 ? await at(index, buyer).get(answer.headers.location) : answer;
    return later.status === 202 ? undefined : later;
  }, SETTLED_MS, 100);
  const answerOf = async (what, index) => settled(index, { ...what, answer: await what.send(at(index, what.buyer), { key: what.key }) });

  const hold = async (what) => ok(await answerOf(what, OTHERS[0]), 201);

  /** Holds a seat of every block, and finds those that the node decides. */
  const blocksOfCut = async () => {
    const found = [];
    for (const name of new Set(event.seats.map((seat) => seat.block))) {
      const decided = await ofCut('holdfast_order_taken_total');
      await hold(reserving(name));
      if ((await ofCut('holdfast_order_taken_total')) > decided) found.push(name);
    }
    return found;
  };

  /** Every hold there ever was of this person and seat, by its state. */
  const statesOf = ({ buyer, seat }) => scene.nodes.select(
    `SELECT status FROM seat_holds WHERE event_id = '${event.id}' AND user_id = '${buyer.user}' AND seat_id = '${seat.seat_id}'`).flat();

  /** How often each partition was claimed. */
  const epochsOf = () => scene.nodes.select('SELECT partition, epoch FROM order_partitions ORDER BY partition');

  /** What was asked of it is true on every node, or was not done; and repeated, it is done once. */
  const proveAsked = async (what) => {
    const word = await settled(CUT, what);
    const isDone = word.status === what.success;
    if (!isDone) assert.ok([404, 503].includes(word.status), word.text);
    if (what.answer.status === 202) {
      for (const index of OTHERS) {
        const { status, text } = isDone ? await settled(index, what) : await at(index, what.buyer).get(what.answer.headers.location);
        assert.ok(isDone ? status === what.success : [202, 404, 503].includes(status), `some say so, some do not: ${word.text}\n${text}`);
      }
    }
    assert.deepEqual(statesOf(what), isDone ? what.after : what.before, `not as was said: ${what.answer.text}`);
    const again = await answerOf(what, OTHERS[0]);
    // Without a key it is another request: for a seat that is one's own already, if the first was done.
    const expected = isDone && what.key === undefined ? 200 : what.success;
    assert.equal(again.status, expected, `repeated: ${again.text}`);
    assert.deepEqual(statesOf(what), what.after);
  };

  it('writes nothing late, does not lie, and joins again; nothing is lost, nothing done twice', async () => {
    const way = scene.kafka.proxies[CUT];
    const [mine, more] = await blocksOfCut();
    assert.ok(more, 'the node has too few blocks');

    // A release that it has fetched and cannot finish: somebody has locked the seat.
    const owner = person();
    const held = [];
    for (const name of [mine, mine, more]) held.push(await hold({ ...reserving(name), buyer: owner }));
    const [stuck, early, late] = held;
    session = new Session(scene.nodes.store);
    await session.do(`BEGIN; SELECT 1 FROM seats WHERE id = '${stuck.seat_id}' FOR UPDATE;`);
    const misses = await ofCut('holdfast_store_misses_total');
    const release = releasing(owner, stuck, uuid());
    release.answer = await release.send(at(OTHERS[0], owner), { key: release.key });
    assert.equal(release.answer.status, 202, release.answer.text);
    await waitFor('the node to try it', async () => (await ofCut('holdfast_store_misses_total')) > misses);

    const traffic = await scene.play(async (buyers) => {
      for (const kind of [PRODUCE, FETCH, HEARTBEAT]) assert.ok(way.passed.get(kind) > 0, `no request of kind ${kind} came through the proxy`);
      const fenced = await ofCut('holdfast_order_fenced_total');
      await way.cutAfter(HEARTBEAT, ANSWER_MS);
      // While it believes that all is well: these are on their way to Kafka until the network heals.
      await Promise.all([reserving(mine), reserving(more, uuid()), releasing(owner, early, uuid())].map(askCut));
      await waitFor('the others to have all partitions', async () => (await had(OTHERS)) === PARTITION_COUNT);
      await waitFor('what it had in hand to be refused', async () => (await ofCut('holdfast_order_fenced_total')) > fenced);
      // Only Kafka can say that it has them again, and it cannot be asked: it takes none of them back.
      const epochs = epochsOf();
      await session.do('ROLLBACK;');
      assert.equal((await settled(OTHERS[1], release)).status, 200);
      assert.deepEqual(statesOf(release), release.after);

      buyers.targets = OTHERS.map((index) => scene.nodes.list[index]);
      await scene.moves(buyers, 15);
      for (const name of [mine, more]) {
        const first = reserving(name);
        await hold(first);
        assert.equal((await answerOf({ ...first, buyer: person() }, OTHERS[1])).body.error.code, 'seat_held_by_another_user');
      }
      await waitFor('it to know that it has no partitions', async () => (await had([CUT])) === 0);
      await waitFor('it to say that it cannot work', async () => (await scene.nodes.readiness(scene.nodes.list[CUT])).http === 503);
      await Promise.all([reserving(mine), reserving(more, uuid()), releasing(owner, late, uuid())].map(askCut));
      await scene.agrees(event, CUT); // what it shows is what the others did

      assert.deepEqual(epochsOf(), epochs, 'somebody claimed what was another’s');
      const sent = way.passed.get(PRODUCE);
      way.heal();
      assert.ok(way.passed.get(PRODUCE) > sent, 'nothing that it sent meanwhile arrives late');
      await scene.nodes.shared();
      await scene.nodes.ready();
      buyers.targets = [...scene.nodes.list];
      await scene.moves(buyers, 20);
    }, { layout: LAYOUT });

    assert.deepEqual(traffic.untold(), [], traffic.report());
    assert.deepEqual(traffic.internalErrors(), [], traffic.report());
    await waitFor('nothing to be left in Kafka', async () => (await sum('holdfast_order_lag')) === 0);
    for (const what of asked) await proveAsked(what);
    assert.equal(await sum('holdfast_order_dead_letters_total'), 0);
    for (let i = 0; i < NODE_COUNT; i++) await scene.agrees(event, i);
  });
});
