// SPDX-License-Identifier: Apache-2.0
// The keys in Redis through a hold's life, on two nodes: what each change leaves in every key and says on every channel,
// and which locks refuse, which are taken over, and whose may be deleted.

import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';

import { fails, ok } from '../lib/client.mjs';
import { Registry } from '../lib/redis.mjs';
import { uuid } from '../lib/token.mjs';
import { Scene } from '../lib/traffic.mjs';
import { pause, waitFor } from '../lib/wait.mjs';
import { block, layoutOf, metric } from '../lib/world.mjs';

/** An id that a node would have made `agoMs` ago: version 7, so ids ascend with time. */
function madeId(agoMs) {
  const time = (Date.now() - agoMs).toString(16).padStart(12, '0');
  return `${time.slice(0, 8)}-${time.slice(8)}-7${uuid().slice(15)}`;
}

describe('the keys in Redis', { concurrency: 4 }, () => {
  let scene;
  before(async () => {
    scene = await Scene.open();
  });
  after(() => scene.close());

  const begin = async (options = {}) => {
    const event = await scene.organization.event(options);
    const other = (caller) => scene.nodes.at(1, caller);
    return { event, registry: new Registry(scene.redis, event), buyer: scene.organization.buyer(), stranger: scene.organization.buyer(), other };
  };
  const exists = async (...keys) => (await scene.redis.command('EXISTS', ...keys)) === keys.length;
  const gone = (what, ...keys) => waitFor(`${what} to be gone`, async () => (await scene.redis.command('EXISTS', ...keys)) === 0);
  const dies = async (key) => (await scene.redis.command('PEXPIRETIME', key)) / 1000;
  const near = (seen, expected, what) => assert.ok(Math.abs(seen - expected) <= 1.5, `${what}: ${seen}, expected ${expected}`);

  it('a hold: its lock, member, keys and bit, with their lives', async () => {
    const { event, registry, buyer } = await begin({ layout: layoutOf(block('A', 1, [3, 5]), block('AA', 2, [4])) });
    const seat = event.seats[4]; // row 2, seat 2: longest row 5
    const hold = await event.hold(buyer, seat, { cart_token: 'my cart' });
    await waitFor('the keys', () => exists(registry.lockKey(seat), registry.holdKey(seat), registry.metaKey(hold), registry.members));
    const lock = await registry.lock(seat);
    assert.deepEqual(Object.keys(lock).sort(), ['cart_token', 'expires_at', 'held_at', 'hold_id', 'user_id']);
    assert.equal(lock.hold_id, hold.hold_id);
    assert.equal(lock.user_id, buyer.user);
    assert.equal(lock.cart_token, 'my cart');
    assert.equal(Date.parse(lock.expires_at) / 1000, hold.held_until_unix);
    near(await dies(registry.lockKey(seat)), hold.held_until_unix + 60, 'the lock outlives its hold by a minute');
    const [member] = await registry.memberList();
    assert.equal(member.text, `${seat.seat_id}:${hold.hold_id}:${buyer.user}:${hold.held_until}`);
    near(member.score, hold.held_until_unix, 'score');
    assert.equal(await scene.redis.command('TTL', registry.members), -1, 'the zset has no life of its own');
    assert.match(await scene.redis.command('GET', registry.holdKey(seat)), new RegExp(`^${hold.hold_id}:${buyer.user}:${hold.held_until_unix}$`));
    near(await dies(registry.holdKey(seat)), hold.held_until_unix, 'the hold key');
    const meta = await scene.redis.command('HGETALL', registry.metaKey(hold));
    const fields = Object.fromEntries(meta.flatMap((word, i) => (i % 2 === 0 ? [[word, meta[i + 1]]] : [])));
    assert.deepEqual(Object.keys(fields).sort(), ['created_at', 'event_id', 'held_until', 'seat_id', 'source', 'status', 'user_id']);
    assert.equal(fields.held_until, hold.held_until);
    assert.equal(fields.status, 'active');
    near(await dies(registry.metaKey(hold)), hold.held_until_unix, 'the meta key');
    await waitFor('the bit', async () => (await registry.bits('A-1', 10))[6] === 1);
    assert.deepEqual(await registry.bits('A-1', 10), [0, 0, 0, 0, 0, 0, 1, 0, 0, 0]);
    await event.hold(buyer, event.seats[9]);
    await waitFor('the bit of another block', async () => (await registry.bits('AA-2', 4))[1] === 1);
  });

  it('the lock keeps two nodes apart, and the own one never refuses', async () => {
    const { event, registry, buyer, stranger, other } = await begin();
    const hold = await event.hold(buyer, event.seats[0]);
    const error = fails(await event.reserve(other(stranger), event.seats[0]), 409, 'seat_held_by_another_user');
    assert.equal(error.details.expires_at ?? error.details.held_until, hold.held_until);
    assert.equal(ok(await event.reserve(other(buyer), event.seats[0]), 200).hold_id, hold.hold_id);
    await registry.plantLock(event.seats[1], { hold: uuid(), user: buyer.user });
    ok(await event.reserve(other(buyer), event.seats[1]), 201);
  });

  it('a young lock of a hold that nobody knows refuses, and is taken over when it is 5 s old', async () => {
    const { event, registry, buyer, other } = await begin();
    const seat = event.seats[0];
    const unknown = madeId(0);
    await registry.plantLock(seat, { hold: unknown, user: uuid() });
    const early = await event.reserve(other(buyer), seat);
    assert.equal(early.status, 409, early.text);
    assert.equal((await registry.lock(seat)).hold_id, unknown, 'whoever was refused leaves the lock alone');
    await pause(5200);
    const hold = ok(await event.reserve(other(buyer), seat), 201);
    await waitFor('the lock to be its', async () => (await registry.lock(seat))?.hold_id === hold.hold_id);
    assert.ok((await metric(scene.nodes.list[1], 'holdfast_warm_locks_total', 'taken_over')) > 0);
  });

  it('an old lock of an unknown hold is taken over at once', async () => {
    const { event, registry, buyer } = await begin();
    const seat = event.seats[0];
    await registry.plantLock(seat, { hold: madeId(8000), user: uuid(), agoMs: 8000 });
    const hold = ok(await event.reserve(buyer, seat), 201);
    await waitFor('the lock to be its', async () => (await registry.lock(seat))?.hold_id === hold.hold_id);
  });

  it('a lock from the future is as wrong as an old one', async () => {
    const { event, registry, buyer } = await begin();
    await registry.plantLock(event.seats[0], { hold: madeId(0), user: uuid(), agoMs: -3600000 });
    ok(await event.reserve(buyer, event.seats[0]), 201);
  });

  it('several seats whose locks name holds that have ended are given at once', async () => {
    const { event, registry, buyer, stranger, other } = await begin();
    const seats = event.seats.slice(0, 4);
    const ended = [];
    for (const seat of seats) ended.push(await event.hold(buyer, seat));
    for (const hold of ended) ok(await buyer.del(`/api/holds/${hold.hold_id}`));
    for (const seat of seats) await gone('the lock', registry.lockKey(seat));
    await waitFor('the other node to see them free', async () => (await event.list(other(stranger))).slice(0, 4).every((seat) => seat.status === 'available'));
    for (const [i, seat] of seats.entries()) await registry.plantLock(seat, { hold: ended[i].hold_id, user: buyer.user });
    const answer = ok(await other(stranger).post(`${event.path}/holds`, { seat_ids: seats.map((seat) => seat.seat_id) }), 201);
    assert.equal(answer.holds.length, 4);
  });

  it('several seats of which some are locked by nobody known are refused by name', async () => {
    const { event, registry, buyer } = await begin();
    const seats = event.seats.slice(0, 4);
    for (const seat of seats.slice(1, 3)) await registry.plantLock(seat, { hold: madeId(0), user: uuid() });
    const error = fails(await buyer.post(`${event.path}/holds`, { seat_ids: seats.map((seat) => seat.seat_id) }), 409, 'seat_no_longer_available');
    assert.deepEqual(error.details.seats.map((seat) => seat.seat_id), seats.slice(1, 3).map((seat) => seat.seat_id));
    const best = ok(await buyer.post(`${event.path}/holds`, { quantity: 2, adjacent: false }), 201);
    const taken = best.holds.map((hold) => hold.seat_id);
    assert.ok(!taken.includes(seats[1].seat_id) && !taken.includes(seats[2].seat_id), 'best available takes others');
  });

  it('a lock whose hold has ended is taken over at once, however young it looks', async () => {
    const { event, registry, buyer, stranger, other } = await begin();
    const seat = event.seats[0];
    const ended = await event.hold(buyer, seat);
    ok(await buyer.del(`/api/holds/${ended.hold_id}`));
    await gone('the lock', registry.lockKey(seat));
    await waitFor('the other node to see it free', async () => (await event.list(other(stranger)))[0].status === 'available');
    await registry.plantLock(seat, { hold: ended.hold_id, user: buyer.user });
    const hold = ok(await event.reserve(other(stranger), seat), 201);
    await waitFor('the lock to be its', async () => (await registry.lock(seat))?.hold_id === hold.hold_id);
  });

  it('values that make no sense count as not held', async () => {
    const { event, registry, buyer, other } = await begin();
    const junk = ['', 'x', '{', '[]', 'null', '{"hold_id":1}', '{"hold_id":"not-a-uuid","user_id":"x"}', '\xff\xfe\x00', 'x'.repeat(100000)];
    for (const [i, value] of junk.entries()) {
      await scene.redis.command('SET', registry.lockKey(event.seats[i]), value);
      const hold = ok(await event.reserve(i % 2 ? buyer : other(buyer), event.seats[i]), 201);
      await waitFor(`the lock to be put right over ${JSON.stringify(value.slice(0, 40))}`, async () => {
        try {
          return (await registry.lock(event.seats[i]))?.hold_id === hold.hold_id;
        } catch {
          return false;
        }
      }, 10000);
    }
  });

  it('a release takes its own keys away, and nobody else’s', async () => {
    const { event, registry, buyer, other } = await begin();
    const [first, second] = event.seats;
    const hold = await event.hold(buyer, first);
    const robbed = await event.hold(buyer, second);
    await waitFor('the keys', () => exists(registry.lockKey(first), registry.metaKey(hold), registry.holdKey(second)));
    const foreign = { hold: uuid(), user: uuid() };
    await registry.plantLock(second, foreign);
    await scene.redis.command('SET', registry.holdKey(second), `${foreign.hold}:${foreign.user}:1`);
    ok(await other(buyer).del(`/api/holds/${hold.hold_id}`));
    ok(await other(buyer).del(`/api/holds/${robbed.hold_id}`));
    await gone('keys of the released', registry.lockKey(first), registry.holdKey(first), registry.metaKey(hold), registry.metaKey(robbed));
    await waitFor('the members to go', async () => (await registry.memberList()).length === 0);
    await waitFor('the bits to be free', async () => (await registry.bits('A-1', 20)).every((bit) => bit === 0));
    assert.equal((await registry.lock(second)).hold_id, foreign.hold, 'a lock is deleted by its own hold alone');
    assert.equal(await scene.redis.command('GET', registry.holdKey(second)), `${foreign.hold}:${foreign.user}:1`);
  });

  it('an extension moves the lock, the member and the keys', async () => {
    const { event, registry, buyer, other } = await begin();
    const seat = event.seats[0];
    const hold = await event.hold(buyer, seat);
    await waitFor('the keys', () => exists(registry.lockKey(seat), registry.metaKey(hold)));
    const extended = ok(await other(buyer).post(`/api/holds/${hold.hold_id}/extend`));
    const until = Date.parse(extended.held_until) / 1000;
    assert.ok(until > hold.held_until_unix);
    await waitFor('the member to be replaced', async () => {
      const members = await registry.memberList();
      return members.length === 1 && members[0].iso === extended.held_until && Math.abs(members[0].score - until) <= 1;
    });
    await waitFor('the lives to be longer', async () => (await dies(registry.lockKey(seat))) > hold.held_until_unix + 61);
    near(await dies(registry.lockKey(seat)), until + 60, 'lock');
    near(await dies(registry.holdKey(seat)), until, 'hold key');
    near(await dies(registry.metaKey(hold)), until, 'meta');
    assert.equal((await registry.lock(seat)).hold_id, hold.hold_id);
    assert.equal(Date.parse((await registry.lock(seat)).expires_at) / 1000, until, 'the lock says until when');
    assert.equal(await scene.redis.command('HGET', registry.metaKey(hold), 'held_until'), extended.held_until);
    assert.match(await scene.redis.command('GET', registry.holdKey(seat)), new RegExp(`:${until}$`));
  });

  it('a sale takes the keys away and keeps the bit; blocking sets it', async () => {
    const { event, registry, buyer, other } = await begin();
    const seat = event.seats[2];
    const hold = await event.hold(buyer, seat);
    const checkout = ok(await other(buyer).post('/api/checkouts', { event_id: event.id }), 201);
    ok(await buyer.post(`/api/checkouts/${checkout.checkout_id}/complete`, { payment_token: 'tok_ok' }));
    await gone('the keys', registry.lockKey(seat), registry.holdKey(seat), registry.metaKey(hold));
    await waitFor('the member to go', async () => (await registry.memberList()).length === 0);
    ok(await scene.organization.admin.post(`${event.adminPath}/seats/block`, { seat_ids: [event.seats[5].seat_id] }));
    const expected = Array.from({ length: 20 }, (_, i) => Number(i === 2 || i === 5));
    await waitFor('the bits', async () => (await registry.bits('A-1', 20)).join() === expected.join());
  });

  it('an expiry takes everything away', async () => {
    const { event, registry, buyer } = await begin({ policy: { hold_ttl_seconds: 1, release_grace_seconds: 0 } });
    const seat = event.seats[0];
    const hold = await event.hold(buyer, seat);
    await gone('the keys', registry.lockKey(seat), registry.holdKey(seat), registry.metaKey(hold));
    await waitFor('the member to go', async () => (await registry.memberList()).length === 0);
    await waitFor('the bit to be free', async () => (await registry.bits('A-1', 20)).every((bit) => bit === 0));
  });

  it('a reserve that the store refuses gives its lock back', async () => {
    const { event, registry, buyer, stranger, other } = await begin({ layout: layoutOf(block('A', 1, [6], { capacity: 1 })) });
    await event.hold(buyer, event.seats[0]);
    fails(await event.reserve(other(stranger), event.seats[1]), 409, 'block_at_capacity');
    await gone('the lock', registry.lockKey(event.seats[1]));
  });

  it('messages come after the commit, say what changed, and never who', async () => {
    const { event, buyer, other } = await begin();
    const org = scene.organization.id;
    const ears = await scene.redis.listen(`occupancy:${org}:${event.id}`, `org:${org}:event:${event.id}:seating:seat:*`);
    const seat = event.seats[0];
    const heard = (channel, test) => waitFor(`a message on ${channel}`, () =>
      ears.messages.find((message) => message.channel.endsWith(channel) && test(message.json)));
    const stored = () => scene.nodes.select(`SELECT status FROM seat_holds WHERE event_id = '${event.id}' AND seat_id = '${seat.seat_id}' ORDER BY created_at DESC LIMIT 1`)[0][0];
    const asking = event.hold(buyer, seat);
    const held = await heard(':held', (json) => json.seat_id === seat.seat_id);
    assert.equal(stored(), 'active', 'nothing is told before it is true');
    const hold = await asking;
    assert.equal(held.json.expires_at, hold.held_until);
    await heard(`occupancy:${org}:${event.id}`, (json) => json.seats.some((change) => change.event === 'seat_held' && change.seat_id === seat.seat_id));
    ok(await other(buyer).del(`/api/holds/${hold.hold_id}`));
    assert.equal((await heard(':released', (json) => json.seat_id === seat.seat_id)).json.reason, 'user_cancelled');
    assert.equal(stored(), 'cancelled');
    await event.hold(other(buyer), seat);
    const checkout = ok(await event.checkout(buyer), 201);
    ok(await buyer.post(`/api/checkouts/${checkout.checkout_id}/complete`, { payment_token: 'tok_ok' }));
    await heard(':sold', (json) => json.seat_id === seat.seat_id);
    assert.equal(stored(), 'converted');
    await heard(`occupancy:${org}:${event.id}`, (json) => json.seats.some((change) => change.event === 'seat_sold'));
    ears.close();
    for (const message of ears.messages) assert.ok(!message.text.includes(buyer.user), `${message.channel} tells who: ${message.text}`);
  });

  it('the occupancy key is a snapshot of 10 s, made anew after a change', async () => {
    const { event, registry, buyer, other } = await begin();
    for (const [held, caller] of [[1, buyer], [2, other(buyer)]]) {
      await event.hold(caller, event.seats[held]);
      await waitFor(`a snapshot with ${held} held`, async () => {
        const text = await scene.redis.command('GET', registry.occupancy);
        return text !== null && JSON.parse(text).held === held;
      }, 20000, 100);
      const life = await scene.redis.command('PTTL', registry.occupancy);
      assert.ok(life > 0 && life <= 10000, `lives ${life} ms`);
    }
  });
});
