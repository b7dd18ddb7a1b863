// SPDX-License-Identifier: Apache-2.0
// Buyers over all nodes: they reserve, extend, check out, pay, cancel and release, try again with the same
// Idempotency-Key when an answer does not come or says that the server is in trouble, on another node each time, and
// remember every answer they were given. check() then holds the database against that memory:
//  1. every acknowledged hold, extension, release, cancellation and ticket is there, as it was acknowledged;
//  2. a hold that nobody ended lives at least as long as was promised;
//  3. no seat was held twice at any moment, now or in the past, and none was sold twice;
//  4. nobody was told anything that the contract does not know.

import assert from 'node:assert/strict';
import { Agent } from 'node:http';

import { ok } from './client.mjs';
import { Nodes } from './nodes.mjs';
import { Postgres } from './postgres.mjs';
import { Redis, Registry } from './redis.mjs';
import { uuid } from './token.mjs';
import { pause, waitFor } from './wait.mjs';
import { block, layoutOf } from './world.mjs';

const ATTEMPT_LIMIT_MS = 4000; // of one try; the node may be dead or frozen
const TRY_COUNT_MAX = 40;
const TROUBLE = new Set([429, 500, 503, 504]);

/** What each action may be answered besides success; anything else is a fault. */
const EXPECTED = {
  reserve: new Set(['seat_held_by_another_user', 'seat_not_available', 'seat_no_longer_available']),
  extend: new Set(['holds_expired', 'extension_limit_reached', 'hold_not_found']),
  release: new Set(['holds_expired', 'hold_not_found']),
  checkout: new Set(['holds_expired', 'no_active_holds', 'hold_not_found']),
  pay: new Set(['holds_expired', 'checkout_not_payable', 'payment_failed']),
  cancel: new Set(['checkout_not_cancellable', 'payment_in_progress']),
};

/** Small and seeded: a run can be repeated as far as timing allows. */
function random(seed) {
  let state = seed >>> 0 || 1;
  return () => {
    state ^= state << 13;
    state ^= state >>> 17;
    state ^= state << 5;
    return (state >>> 0) / 2 ** 32;
  };
}

export class Traffic {
  /**
   * `event`: with its seats; `buyers` at once; `fates`: how likely each end of a visit is. `targets` are the nodes that
   * may be asked, and may change while it runs.
   */
  constructor(nodes, event, { buyers = 12, seed = 1, fates = {} } = {}) {
    this.nodes = nodes;
    this.event = event;
    this.width = buyers;
    this.targets = [...nodes.list];
    this.next = random(seed);
    this.fates = { pay: 0.15, decline: 0.05, cancel: 0.1, release: 0.3, leave: 0.1, extend: 0.2, ...fates };
    this.holds = new Map(); // id → {seat, user, until, touched?, released?, ticket?}
    this.tickets = new Map(); // code → {seat, user, checkout}
    this.cancelled = new Set(); // checkouts
    this.unclear = new Set(); // users who were never told whether a seat is theirs
    this.counts = new Map(); // 'action status code' → how often
    this.faults = [];
    this.times = []; // of answers: [when, took, action, status]
    this.agent = new Agent({ keepAlive: true, maxSockets: 64 });
  }

  start() {
    this.stopped = false;
    this.workers = Array.from({ length: this.width }, async () => {
      while (!this.stopped) await this.visit().catch((error) => this.faults.push(error.stack));
    });
    return this;
  }

  /** Ends when everybody has got an answer. */
  async stop() {
    this.stopped = true;
    await Promise.all(this.workers);
    this.agent.destroy();
  }

  get done() {
    return this.holds.size;
  }

  count(action, answer) {
    const name = `${action} ${answer.status} ${answer.body?.error?.code ?? ''}`.trim();
    this.counts.set(name, (this.counts.get(name) ?? 0) + 1);
  }

  report() {
    return [...this.counts].sort().map(([name, count]) => `${name}: ${count}`).join(', ');
  }

  /** Which answers said that something is wrong with the server itself. */
  internalErrors() {
    return [...this.counts.keys()].filter((name) => / 500/.test(name) && !name.includes('seat_reservation_failed'));
  }

  /** Asks until there is a clear answer; undefined when there never was one (then anything may be true). */
  async ask(action, user, method, path, body) {
    const key = uuid();
    for (let attempt = 0; attempt < TRY_COUNT_MAX && !(this.stopped && attempt > 8); attempt++) {
      const node = this.targets[Math.floor(this.next() * this.targets.length)];
      const began = Date.now();
      let answer;
      try {
        answer = await this.nodes.at(this.nodes.list.indexOf(node), user).send(method, path, body, { key, limitMs: ATTEMPT_LIMIT_MS, via: this.agent });
      } catch {
        this.counts.set(`${action} no answer`, (this.counts.get(`${action} no answer`) ?? 0) + 1);
        await pause(30);
        continue;
      }
      answer = await this.settled(answer, user);
      this.count(action, answer);
      this.times.push([Date.now(), Date.now() - began, action, answer.status]);
      const code = answer.body?.error?.code;
      if (TROUBLE.has(answer.status) || code === 'request_in_progress') {
        await pause(30 + 40 * this.next());
        continue;
      }
      const good = answer.status === 200 || answer.status === 201 || answer.status === 202;
      if (!good && !EXPECTED[action].has(code)) this.faults.push(`${action}: ${answer.status} ${answer.text}`);
      return answer;
    }
    return undefined;
  }

  /** With a broker: the answer that came later than its caller could wait, from any node. The 202 itself if it never does. */
  async settled(answer, user) {
    const location = answer.headers.location;
    for (let attempt = 0; answer.status === 202 && location !== undefined && attempt < 400; attempt++) {
      await pause(100);
      const node = this.targets[Math.floor(this.next() * this.targets.length)];
      const later = await this.nodes.at(this.nodes.list.indexOf(node), user).send('GET', location, undefined, { limitMs: ATTEMPT_LIMIT_MS, via: this.agent }).catch(() => undefined);
      if (later === undefined || TROUBLE.has(later.status)) continue;
      if (later.body?.error?.code === 'command_not_found') return { ...answer, status: 503 }; // it was refused, or never came: again, with its key
      if (later.status !== 202) return later;
      if (later.headers.location === undefined) return later; // a payment that is not settled yet
    }
    return answer;
  }

  /** One buyer, one or two seats, one fate. */
  async visit() {
    const user = this.event.organization.buyer();
    const mine = [];
    for (let wanted = this.next() < 0.3 ? 2 : 1; wanted > 0; wanted--) {
      const seat = this.event.seats[Math.floor(this.next() * this.event.seats.length)];
      const answer = await this.ask('reserve', user, 'POST', `${this.event.path}/seats/${seat.seat_id}/reserve`, {});
      if (answer === undefined || answer.status === 202) this.unclear.add(user.user);
      if (answer?.status !== 201 && answer?.status !== 200) continue;
      const data = answer.body.data;
      const known = this.holds.get(data.hold_id);
      if (known === undefined) {
        this.holds.set(data.hold_id, { seat: seat.seat_id, user: user.user, until: data.held_until_unix ?? Date.parse(data.held_until) / 1000 });
      }
      if (!mine.includes(data.hold_id)) mine.push(data.hold_id);
    }
    if (mine.length === 0) return pause(5);

    if (this.next() < this.fates.extend) await this.extend(user, mine[0]);
    let dice = this.next();
    for (const fate of ['pay', 'decline', 'cancel', 'release', 'leave']) {
      dice -= this.fates[fate];
      if (dice < 0) return this[fate](user, mine);
    }
    return undefined; // keeps the seats until they run out
  }

  async extend(user, id) {
    const answer = await this.ask('extend', user, 'POST', `/api/holds/${id}/extend`, {});
    if (answer?.status === 200) this.holds.get(id).until = Date.parse(answer.body.data.held_until) / 1000;
  }

  async release(user, mine) {
    for (const id of mine) {
      this.holds.get(id).touched = true; // between the question and its answer anything may be true
      const answer = await this.ask('release', user, 'DELETE', `/api/holds/${id}`);
      if (answer?.status === 200) this.holds.get(id).released = true;
    }
  }

  leave() {
    return undefined;
  }

  async begin(user, mine) {
    const answer = await this.ask('checkout', user, 'POST', '/api/checkouts', { event_id: this.event.id, hold_ids: mine });
    return answer?.status === 201 || answer?.status === 200 ? answer.body.data : undefined;
  }

  async pay(user, mine, token = 'tok_ok') {
    const checkout = await this.begin(user, mine);
    if (checkout === undefined) return;
    for (const id of mine) this.holds.get(id).touched = true;
    const path = `/api/checkouts/${checkout.checkout_id}`;
    const answer = await this.ask('pay', user, 'POST', `${path}/complete`, { payment_token: token });
    if (answer?.status !== 200) return;
    for (const ticket of answer.body.data.tickets) {
      const known = this.tickets.get(ticket.code);
      if (known) this.faults.push(`ticket ${ticket.code} was given twice`);
      this.tickets.set(ticket.code, { seat: ticket.seat_id, user: user.user, checkout: checkout.checkout_id });
    }
  }

  decline(user, mine) {
    return this.pay(user, mine, 'tok_declined');
  }

  async cancel(user, mine) {
    const checkout = await this.begin(user, mine);
    if (checkout === undefined) return;
    for (const id of mine) this.holds.get(id).touched = true;
    const answer = await this.ask('cancel', user, 'POST', `/api/checkouts/${checkout.checkout_id}/cancel`, {});
    if (answer?.status === 200) this.cancelled.add(checkout.checkout_id);
  }

  /** Holds the database against what was acknowledged. */
  check() {
    const { nodes, event } = this;
    assert.deepEqual(this.faults, [], this.report());
    assert.ok(this.holds.size > 0, `nobody held anything: ${this.report()}`);
    const rows = new Map(nodes.select(`
      SELECT id, seat_id, user_id, status, extract(epoch FROM held_until), coalesce(cancellation_reason, ''),
             coalesce(extract(epoch FROM coalesce(expired_at, cancelled_at, converted_at)), 0)
      FROM seat_holds WHERE event_id = '${event.id}'`).map(([id, seat, user, status, until, reason, ended]) =>
      [id, { seat, user, status, until: Number(until), reason, ended: Number(ended) }]));
    for (const [id, told] of this.holds) {
      const row = rows.get(id);
      assert.ok(row, `the acknowledged hold ${id} of seat ${told.seat} is lost`);
      assert.equal(row.seat, told.seat, `hold ${id}: its seat`);
      assert.equal(row.user, told.user, `hold ${id}: its user`);
      assert.ok(row.until >= told.until - 1, `hold ${id}: promised until ${told.until}, kept until ${row.until}`);
      if (told.released) assert.ok(row.status === 'cancelled' || row.status === 'expired', `hold ${id} was released, and is ${row.status}`);
      if (!told.touched && row.status !== 'active') {
        assert.equal(row.status, 'expired', `nobody ended hold ${id} (${row.reason})`);
        assert.ok(row.ended >= told.until - 1, `hold ${id} ended at ${row.ended}, promised until ${told.until}`);
      }
    }
    const tickets = new Map(nodes.select(`SELECT code, seat_id, user_id, checkout_id FROM tickets WHERE event_id = '${event.id}'`)
      .map(([code, seat, user, checkout]) => [code, { seat, user, checkout }]));
    for (const [code, told] of this.tickets) assert.deepEqual(tickets.get(code), told, `the ticket ${code} that was given`);
    const ended = new Map(nodes.select(`SELECT id, status FROM checkouts WHERE event_id = '${event.id}'`));
    for (const id of this.cancelled) assert.equal(ended.get(id), 'cancelled', `the cancelled checkout ${id}`);

    const twice = nodes.select(`
      SELECT a.seat_id, a.id, b.id FROM seat_holds a JOIN seat_holds b ON a.seat_id = b.seat_id AND a.id < b.id
      WHERE a.event_id = '${event.id}'
        AND a.created_at < coalesce(b.expired_at, b.cancelled_at, b.converted_at, 'infinity')
        AND b.created_at < coalesce(a.expired_at, a.cancelled_at, a.converted_at, 'infinity')`);
    assert.deepEqual(twice, [], 'holds of the same seat that overlap in time');
    const sold = nodes.select(`SELECT seat_id FROM tickets WHERE event_id = '${event.id}' AND refunded_at IS NULL GROUP BY seat_id HAVING count(*) > 1`);
    assert.deepEqual(sold, [], 'seats sold twice');
    const apart = nodes.select(`
      SELECT s.id, s.status FROM seats s
      LEFT JOIN seat_holds h ON h.seat_id = s.id AND h.status = 'active'
      LEFT JOIN tickets t ON t.seat_id = s.id AND t.refunded_at IS NULL
      WHERE s.event_id = '${event.id}' AND ((s.status = 'held') <> (h.id IS NOT NULL) OR (s.status = 'sold') <> (t.id IS NOT NULL))`);
    assert.deepEqual(apart, [], 'seats whose state has no hold or ticket behind it');
  }

  /** Holds of which nobody was told, though everything that was asked was answered: done twice, or after a refusal. */
  untold() {
    return this.nodes.select(`SELECT id, seat_id, user_id FROM seat_holds WHERE event_id = '${this.event.id}'`)
      .filter(([id, , user]) => !this.holds.has(id) && !this.unclear.has(user));
  }

  /** Nothing is kept beyond promise 3: holds that are past their time and their grace by `slackSeconds`. */
  stuck(slackSeconds) {
    return this.nodes.select(`
      SELECT h.id, h.held_until FROM seat_holds h JOIN events e ON e.id = h.event_id
      LEFT JOIN checkouts c ON c.id = h.checkout_id AND c.status = 'processing'
      WHERE h.event_id = '${this.event.id}' AND h.status = 'active' AND c.id IS NULL
        AND h.held_until + make_interval(secs => e.release_grace_seconds + ${slackSeconds}) < now()`);
  }
}

/** Holds of the busy event: short, so that many of them run out while there is trouble. */
const BUSY_POLICY = { hold_ttl_seconds: 4, release_grace_seconds: 1, checkout_extension_seconds: 4, hold_max_seconds: 60 };

const BUSY_LAYOUT = layoutOf(block('A', 1, [30, 24, 30, 30]), block('B', 2, [9, 12]));

/**
 * Where trouble takes place: a PostgreSQL, a Redis (unless `warm` is false) and nodes on them; and for each test a busy
 * event with traffic and a quiet one whose holds were there before and must be there afterwards.
 */
export class Scene {
  /** `kafka`: a server of test/lib/kafka.mjs, which the scene then stops; `args`: more options for every node. */
  static async open({ nodes = 2, warm = true, kafka, settings = [], args } = {}) {
    const scene = new Scene();
    scene.kafka = kafka;
    scene.postgres = new Postgres(['max_connections=200', ...settings]);
    scene.redis = warm ? await Redis.start() : undefined;
    scene.nodes = await Nodes.start(nodes, { postgres: scene.postgres, warm: warm ? `${scene.redis.url}?retry_ms=500` : undefined, kafka, args });
    scene.organization = await scene.nodes.world.organization();
    await scene.known(scene.organization.buyer());
    if (warm) await scene.nodes.breakers('closed');
    if (kafka) await scene.nodes.shared();
    return scene;
  }

  /** Every node has heard of the organization of this person. */
  known(caller) {
    return waitFor('all nodes to know the organization', async () => {
      const answers = await Promise.all(this.nodes.list.map((_, i) => this.nodes.at(i, caller).get('/api/events')));
      return answers.every((answer) => answer.status === 200);
    });
  }

  async close() {
    try {
      await this.nodes.stop();
      await this.nodes.prove();
    } finally {
      await this.kafka?.stop();
      this.redis?.destroy();
      this.postgres.destroy();
    }
  }

  /** `trouble(traffic)` happens while buyers come and go; afterwards everything must be in order by itself. */
  async play(trouble, { buyers = 10, seed = 7, fates, noFailures = false, layout = BUSY_LAYOUT } = {}) {
    this.busy = await this.organization.event({ policy: BUSY_POLICY, layout });
    this.quiet = await this.organization.event({ layout: layoutOf(block('C', 1, [12])) });
    const owner = this.organization.buyer();
    this.kept = [];
    for (const seat of this.quiet.seats.slice(0, 5)) this.kept.push(await this.quiet.hold(owner, seat));
    const traffic = new Traffic(this.nodes, this.busy, { buyers, seed, fates }).start();
    try {
      await this.moves(traffic, 20);
      await trouble(traffic);
      await this.moves(traffic, 20);
    } finally {
      await traffic.stop();
    }
    traffic.check();
    if (noFailures) {
      const failed = [...traffic.counts].filter(([name]) => / 5\d\d|no answer/.test(name));
      assert.deepEqual(failed, [], `no request fails because of Redis: ${traffic.report()}`);
    }
    await this.settle(traffic);
    return traffic;
  }

  /** Service: `count` more holds are granted. */
  moves(traffic, count) {
    const from = traffic.done;
    return waitFor(`${count} more holds; ${traffic.report()}`, () => traffic.done >= from + count || traffic.faults.length > 0, 45000);
  }

  /** Nothing stuck, every node's memory and Redis as the store has it, the quiet event untouched. */
  async settle(traffic) {
    await waitFor('every hold that ran out to be released', () => traffic.stuck(0).length === 0, 45000, 250);
    for (const event of [this.busy, this.quiet]) {
      for (const node of this.nodes.alive()) await this.agrees(event, this.nodes.list.indexOf(node));
      if (this.redis) await this.reconcile(event);
    }
    const active = new Map(this.activeHolds(this.quiet).map((hold) => [hold.hold, hold.seat]));
    for (const hold of this.kept) assert.equal(active.get(hold.hold_id), hold.seat_id, `the hold ${hold.hold_id} that was there before`);
    const [[ended]] = this.nodes.select(`SELECT count(*) FROM seat_holds WHERE event_id = '${this.quiet.id}' AND status <> 'active'`);
    assert.equal(ended, '0');
    await this.nodes.prove();
  }

  /** A node's memory shows what the store has. */
  async agrees(event, index) {
    await waitFor(
      `node ${index} to agree with the store`,
      async () => {
        const stored = new Map(this.nodes.select(`SELECT id, status FROM seats WHERE event_id = '${event.id}'`));
        const answer = await this.nodes.at(index, this.organization.admin).get(`${event.path}/seats`);
        if (answer.status === 404) return false; // it has not heard of the event yet
        return ok(answer).every((seat) => stored.get(seat.seat_id) === seat.status);
      },
      30000,
      100,
    );
  }

  activeHolds(event) {
    return this.nodes.select(`
      SELECT id, seat_id, user_id, extract(epoch FROM held_until) FROM seat_holds
      WHERE event_id = '${event.id}' AND status = 'active'`).map(([hold, seat, user, until]) => ({ hold, seat, user, until: Number(until) }));
  }

  /** Every seat with its block, status and bit. */
  seatRows(event) {
    return this.nodes.select(`
      SELECT s.id, b.section || '-' || b.subsection, s.status,
             (s.row - 1) * max(s.seat) OVER (PARTITION BY s.block_id) + s.seat - 1
      FROM seats s JOIN blocks b ON b.id = s.block_id AND b.event_id = s.event_id
      WHERE s.event_id = '${event.id}'`).map(([seat, name, status, bit]) => ({ seat, block: name, status, bit: Number(bit) }));
  }

  /**
   * What a sweep would put right within half a minute, at once; then nothing may be missing and nothing left over. A lock
   * younger than 5 s may belong to a commit under way, and is left until it is older.
   */
  async reconcile(event) {
    const caller = this.nodes.at(this.nodes.list.indexOf(this.nodes.alive()[0]), this.organization.admin);
    const end = Date.now() + 15000;
    do ok(await caller.post(`${event.adminPath}/registry/reconcile`));
    while ((await this.registryFaults(event)).length > 0 && Date.now() < end && (await pause(1000), true));
    await this.registryRight(event, 3000);
  }

  /** What is wrong in Redis, compared with the store, as sentences. */
  registryFaults(event) {
    return new Registry(this.redis, event).faults(this.activeHolds(event), this.seatRows(event));
  }

  /** Redis holds exactly what it should, and every node says so. */
  async registryRight(event, limitMs = 40000) {
    let wrong = [];
    const look = async () => {
      try {
        wrong = await this.registryFaults(event);
      } catch (error) {
        wrong = [`it could not be asked: ${error.stack}`]; // a key may die, a connection may end while it is looked at
      }
      return wrong.length === 0;
    };
    try {
      await waitFor('the registry to be right', look, limitMs, 300);
    } catch (error) {
      throw new Error(`${error.message}: ${wrong.slice(0, 8).join('; ')}`);
    }
    for (const node of this.nodes.alive()) {
      const caller = this.nodes.at(this.nodes.list.indexOf(node), this.organization.admin);
      await waitFor('the registry to be called consistent', async () => ok(await caller.get(`${event.adminPath}/registry`)).consistent, 20000, 200);
    }
  }
}
