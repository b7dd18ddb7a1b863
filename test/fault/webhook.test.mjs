// SPDX-License-Identifier: Apache-2.0
// Domain events arrive at a real receiver: signed, in order for each seat, at least once, whatever happens to the receiver
// or to the node that delivers. One event that is refused is set aside and shown; an outage sets nothing aside.

import assert from 'node:assert/strict';
import { chmodSync } from 'node:fs';
import { after, before, describe, it } from 'node:test';

import { ok } from '../lib/client.mjs';
import { makeDatabase, Postgres } from '../lib/postgres.mjs';
import { Receiver } from '../lib/receiver.mjs';
import { run, runAsync, start } from '../lib/server.mjs';
import { inParallel, waitFor } from '../lib/wait.mjs';
import { block, buy, Event, layoutOf, metric, Organization, World } from '../lib/world.mjs';

const clean = async (server) => {
  const proof = await server.verify();
  assert.equal(proof.status, 0, proof.stdout + proof.stderr);
};

/** The same event, as seen through another server on the same store. */
const through = (server, event) =>
  Object.assign(new Event(new Organization(new World(server), event.organization.id), event.id), { seats: event.seats });

/** The server has heard that so many events were taken: it will not send them again. */
const waitUntilKnown = (server, count) =>
  waitFor(`${count} events known to be delivered`, async () => (await metric(server, 'holdfast_deliveries_total', 'delivered')) >= count);

/** Sequence grows for each subject. */
const expectOrdered = (events) => {
  const last = new Map();
  for (const event of events) {
    assert.ok(!(event.sequence <= (last.get(event.subject) ?? '')), `${event.type} ${event.sequence} of ${event.subject} is in order`);
    last.set(event.subject, event.sequence);
  }
};

describe('domain events', { concurrency: 4 }, () => {
  const receivers = new Set();
  const servers = new Set();
  after(async () => {
    for (const server of servers) if (server.child.exitCode === null && server.child.signalCode === null) await server.kill9();
    for (const receiver of receivers) await receiver.close();
  });

  const begin = async ({ args = [], rows = [10, 10], ...options } = {}) => {
    const receiver = await new Receiver().listen();
    receivers.add(receiver);
    const server = await start({ ...options, args: [...receiver.args, ...args] });
    servers.add(server);
    const organization = await new World(server).organization();
    const event = await organization.event({ layout: layoutOf(block('A', 1, rows, { price: 1500 })) });
    return { receiver, server, organization, event };
  };

  it('tell what happened to seats and checkouts, in order', async () => {
    const { receiver, server, organization, event } = await begin();
    const [first, second, third, fourth, fifth] = event.seats.map((seat) => seat.seat_id);
    const buyer = organization.buyer();

    const hold = await event.hold(buyer, first);
    ok(await buyer.post(`/api/holds/${hold.hold_id}/extend`));
    ok(await buyer.del(`/api/holds/${hold.hold_id}`));
    await event.hold(organization.buyer(), first);
    await receiver.waitForTypes(first, ['SeatReserved', 'HoldExtended', 'SeatReleased', 'SeatReserved']);
    const [reserved, extended, released] = receiver.of(first);
    assert.equal(reserved.specversion, '1.0');
    assert.equal(reserved.source, `/holdfast/organizations/${organization.id}`);
    assert.deepEqual(reserved.data, {
      organization_id: organization.id,
      event_id: event.id,
      seat_id: first,
      hold_id: hold.hold_id,
      user_id: buyer.user,
      checkout_id: null,
      price_cents: 1500,
      source: 'web',
      held_until: reserved.data.held_until,
      held_until_unix: Date.parse(reserved.data.held_until) / 1000,
    });
    assert.ok(extended.data.held_until_unix > reserved.data.held_until_unix);
    assert.equal(released.data.reason, 'user_cancelled');
    assert.equal(released.data.seat_status, 'available');

    const bought = await buy(event, organization.buyer(), [second]);
    await receiver.waitForTypes(second, ['SeatReserved', 'HoldExtended']);
    await receiver.waitForTypes(bought.checkout_id, ['CheckoutStarted', 'CheckoutCompleted']);
    const [started, completed] = receiver.of(bought.checkout_id);
    assert.deepEqual(started.data.seats.map((seat) => seat.seat_id), [second]);
    assert.equal(started.data.total_cents, 1500);
    assert.deepEqual(completed.data.tickets.map((ticket) => [ticket.ticket_id, ticket.seat_id]), [[bought.tickets[0].ticket_id, second]]);

    const declined = organization.buyer();
    await event.hold(declined, third);
    const failing = ok(await event.checkout(declined), 201);
    assert.equal((await declined.post(`/api/checkouts/${failing.checkout_id}/complete`, { payment_token: 'tok_declined' })).status, 402);
    await receiver.waitForTypes(failing.checkout_id, ['CheckoutStarted', 'CheckoutFailed']);
    assert.equal(receiver.of(third).at(-1).data.reason, 'payment_failed');

    const undecided = organization.buyer();
    await event.hold(undecided, fourth);
    const cancelled = ok(await event.checkout(undecided), 201);
    ok(await undecided.post(`/api/checkouts/${cancelled.checkout_id}/cancel`));
    await receiver.waitForTypes(cancelled.checkout_id, ['CheckoutStarted', 'CheckoutCancelled']);

    await event.hold(organization.buyer(), fifth);
    ok(await organization.admin.post(`${event.adminPath}/seats/block`, { seat_ids: [fifth] }));
    await receiver.waitForTypes(fifth, ['SeatReserved', 'SeatReleased']);
    assert.equal(receiver.of(fifth)[1].data.reason, 'admin_override');
    assert.equal(receiver.of(fifth)[1].data.seat_status, 'blocked');

    expectOrdered(receiver.taken);
    const text = JSON.stringify(receiver.taken);
    for (const secret of [bought.tickets[0].code, hold.cart_token, 'tok_ok', 'tok_declined']) {
      assert.ok(typeof secret === 'string' && !text.includes(secret), 'what is secret is not told');
    }
    const delivered = receiver.taken.length;
    await waitFor('what was delivered to be counted', async () => (await metric(server, 'holdfast_deliveries_total', 'delivered')) === delivered);
    assert.equal(await metric(server, 'holdfast_delivery_leader'), 1);
    await server.stop();
    await clean(server);
  });

  it('a node that is stopped goes on where it was, and tells nothing again', async () => {
    const { receiver, server, organization, event } = await begin();
    await event.hold(organization.buyer(), event.seats[0]);
    await receiver.waitForCount(1);
    await waitUntilKnown(server, 1);
    await server.stop();
    await server.launch();
    const same = through(server, event);
    await same.hold(same.organization.buyer(), same.seats[1]);
    await receiver.waitForCount(2);
    assert.equal(receiver.taken.length, 2);
    await server.stop();
  });

  it('a receiver that is down for a while gets everything when it is back, in order', async () => {
    const { receiver, server, organization, event } = await begin({ args: ['--webhook-tries', '1'], rows: Array(4).fill(50) });
    await event.hold(organization.buyer(), event.seats[0]);
    await receiver.waitForCount(1);
    await receiver.leave();
    await inParallel(event.seats.slice(1), 8, async (seat) => {
      const buyer = organization.buyer();
      const hold = await event.hold(buyer, seat);
      ok(await buyer.del(`/api/holds/${hold.hold_id}`));
    });
    await waitFor('a try in vain', async () => (await metric(server, 'holdfast_deliveries_total', 'retried')) > 0);
    await receiver.listen();
    const expected = 1 + 2 * (event.seats.length - 1);
    await receiver.waitForCount(expected);
    assert.equal(receiver.distinct().length, expected);
    for (const seat of event.seats.slice(1)) assert.deepEqual(receiver.types(seat.seat_id), ['SeatReserved', 'SeatReleased']);
    expectOrdered(receiver.distinct());
    assert.equal(await metric(server, 'holdfast_deliveries_total', 'dead'), 0);
    await server.stop();
  });

  it('a receiver that answers at great length is judged by its status', async () => {
    const { receiver, server, organization, event } = await begin();
    receiver.answer = () => 200;
    receiver.body = 'x'.repeat(200000);
    for (const seat of event.seats.slice(0, 3)) await event.hold(organization.buyer(), seat);
    await receiver.waitForCount(3);
    await waitFor('all of it delivered', async () => (await metric(server, 'holdfast_deliveries_total', 'delivered')) >= 3);
    assert.equal(receiver.taken.length, 3, 'nothing came twice');
    await server.stop();
  });

  for (const status of [500, 404]) {
    it(`a receiver that answers ${status} to everything for a while loses nothing`, async () => {
      const { receiver, server, organization, event } = await begin({ args: ['--webhook-tries', '1'] });
      let refused = 0;
      receiver.answer = () => (refused++, status);
      await event.hold(organization.buyer(), event.seats[0]);
      await waitFor('several refusals, of empty requests too', () => refused >= 4);
      receiver.answer = () => 200;
      await receiver.waitForTypes(event.seats[0].seat_id, ['SeatReserved']);
      assert.equal(await metric(server, 'holdfast_deliveries_total', 'dead'), 0);
      await server.stop();
    });
  }

  it('kill -9 between delivery and save: all of it comes again, with the same ids', async () => {
    const { receiver, server, organization, event } = await begin();
    // Taken, but the answer never leaves: the node dies with the request.
    let taken;
    const caught = new Promise((resolve) => (taken = resolve));
    receiver.answer = (events) => {
      receiver.taken.push(...events);
      taken();
      return new Promise(() => {});
    };
    for (const seat of event.seats.slice(0, 5)) await event.hold(organization.buyer(), seat);
    await caught;
    const before = receiver.distinct();
    await server.kill9();
    receiver.answer = () => 200;
    await server.launch();
    await waitFor('all of it again', () => receiver.taken.length >= before.length + 5);
    const ids = new Set(receiver.taken.slice(before.length).map((one) => one.id));
    for (const one of before) assert.ok(ids.has(one.id), 'what was not known to be delivered comes again, as it was');
    assert.equal(receiver.distinct().length, 5);
    expectOrdered(receiver.taken.slice(before.length));
    await server.stop();
    await clean(server);
  });

  it('kill -9 under load, again and again: nothing is left out, what comes twice is the same', async () => {
    const { receiver, server, event } = await begin({ rows: Array(12).fill(50) });
    let current = event;
    const acknowledged = new Map(); // seat → hold
    let next = 0;
    for (let round = 0; round < 3; round++) {
      let stopped = false;
      const workers = Array.from({ length: 8 }, async () => {
        while (!stopped && next < event.seats.length) {
          const seat = event.seats[next++];
          const answer = await current.reserve(current.organization.buyer(), seat, {}, { limitMs: 8000 }).catch(() => undefined);
          if (answer?.status === 201) acknowledged.set(seat.seat_id, answer.body.data.hold_id);
          if (answer === undefined) return;
        }
      });
      const begun = acknowledged.size;
      await waitFor('some holds', () => acknowledged.size > begun + 60);
      await server.kill9();
      stopped = true;
      await Promise.all(workers);
      await server.launch();
      current = through(server, event);
    }
    await waitFor('every acknowledged hold to be told', () => {
      const told = new Map(receiver.distinct().map((one) => [one.subject, one.data.hold_id]));
      return [...acknowledged].every(([seat, hold]) => told.get(seat) === hold);
    }, 60000);
    for (const seat of event.seats) assert.ok(receiver.types(seat.seat_id).length <= 1, 'each hold is told once');
    await server.stop();
    await clean(server);
  });

  it('an event that is always refused becomes a dead letter, and the others go on', async () => {
    const { receiver, server, organization, event } = await begin({ args: ['--webhook-tries', '2'], rows: [30] });
    const poison = event.seats[13].seat_id;
    receiver.answer = (events) => (events.some((one) => one.subject === poison) ? 422 : 200);
    await Promise.all(event.seats.map((seat) => event.hold(organization.buyer(), seat)));
    await receiver.waitForCount(event.seats.length - 1);
    const letters = await waitFor('the dead letter', async () => {
      const list = ok(await organization.admin.get('/api/admin/dead-letters'));
      return list.length > 0 ? list : undefined;
    });
    assert.equal(letters.length, 1);
    const [letter] = letters;
    assert.equal(letter.type, 'SeatReserved');
    assert.equal(letter.delivery, 'webhook');
    assert.equal(letter.organization_id, organization.id);
    assert.equal(letter.reason, 'HTTP 422');
    assert.ok(letter.tries >= 2);
    assert.equal(letter.id, letter.event.id);
    assert.equal(letter.event.subject, poison);
    assert.deepEqual(receiver.types(poison), []);

    const stranger = await new World(server).organization();
    assert.deepEqual(ok(await stranger.admin.get('/api/admin/dead-letters')), []);
    assert.equal(ok(await new World(server).operator().get('/api/admin/dead-letters')).length, 1);
    assert.equal((await organization.buyer().get('/api/admin/dead-letters')).status, 403);
    assert.equal(await metric(server, 'holdfast_deliveries_total', 'dead'), 1);
    await server.stop();
    await clean(server);
  });

  it('dead letters are listed by `holdfast dlq`, beside the running server', async () => {
    const { receiver, server, organization, event } = await begin({ args: ['--webhook-tries', '1'] });
    receiver.answer = (events) => (events.some((one) => one.type === 'SeatReserved') ? 422 : 200);
    const empty = await runAsync(['dlq', 'list', '--store', server.store]);
    assert.equal(empty.status, 0, empty.stderr);
    assert.match(empty.stdout, /^0 dead letters$/m);
    await event.hold(organization.buyer(), event.seats[0]);
    const letters = await waitFor('the dead letter', async () => {
      const list = ok(await organization.admin.get('/api/admin/dead-letters'));
      return list.length > 0 ? list : undefined;
    });
    const [letter] = letters;
    const stranger = await new World(server).organization();
    const table = await runAsync(['dlq', 'list', '--store', server.store]);
    assert.equal(table.status, 0, table.stderr);
    assert.match(table.stdout, new RegExp(`SeatReserved .*${organization.id} .*${letter.id} .*HTTP 422`));
    assert.match(table.stdout, /^1 dead letter$/m);
    const json = await runAsync(['dlq', 'list', '--json', '--store', server.store]);
    assert.deepEqual(JSON.parse(json.stdout), letters);
    const none = await runAsync(['dlq', 'list', '--org', stranger.id, '--json', '--store', server.store]);
    assert.deepEqual(JSON.parse(none.stdout), []);
    assert.equal((await runAsync(['dlq', '--store', server.store])).status, 2);
    await server.stop();
  });

  it('an event that makes the receiver fail is tried as often as told, and then set aside', async () => {
    const { receiver, server, organization, event } = await begin({ args: ['--webhook-tries', '2'] });
    const poison = event.seats[0].seat_id;
    receiver.answer = (events) => (events.some((one) => one.subject === poison) ? 500 : 200);
    await event.hold(organization.buyer(), poison);
    await event.hold(organization.buyer(), event.seats[1]);
    await receiver.waitForCount(1);
    await waitFor('the dead letter', async () => ok(await organization.admin.get('/api/admin/dead-letters')).length === 1);
    assert.ok(receiver.requests.filter((request) => request.events.some((one) => one.subject === poison)).length >= 3);
    await server.stop();
  });

  it('a webhook without a secret, and a URL that is none, are refused with one sentence', () => {
    const receiver = new Receiver();
    const cases = [
      [['--webhook-url', 'http://127.0.0.1:1/'], /webhook-url and webhook-secret-file go together/],
      [['--webhook-secret-file', receiver.secretFile], /webhook-url and webhook-secret-file go together/],
      [['--webhook-url', 'ftp://x/', '--webhook-secret-file', receiver.secretFile], /--webhook-url: a webhook is http:\/\/ or https:\/\//],
      [['--webhook-url', 'http://127.0.0.1:1/', '--webhook-secret-file', '/nowhere'], /\/nowhere/],
      [['--webhook-url', 'http://127.0.0.1:1/', '--webhook-secret-file', receiver.secretFile, '--webhook-tries', '0'], /webhook-tries must be a whole number from 1 to 100/],
    ];
    for (const [args, sentence] of cases) {
      const result = run(['serve', '--listen', '127.0.0.1:0', ...args]);
      assert.notEqual(result.status, 0);
      assert.match(result.stderr, sentence);
      assert.equal(result.stderr.trim().split('\n').length, 1, result.stderr);
    }
  });

  it('a secret that others can read is warned about', async () => {
    const receiver = await new Receiver().listen();
    receivers.add(receiver);
    chmodSync(receiver.secretFile, 0o644);
    const server = await start({ args: receiver.args });
    servers.add(server);
    await waitFor('the warning', () => server.output().includes(receiver.secretFile));
    await server.stop();
  });
});

describe('domain events of several nodes', () => {
  let postgres;
  const servers = new Set();
  const receivers = new Set();
  before(() => {
    postgres = new Postgres();
  });
  after(async () => {
    for (const server of servers) if (server.child.exitCode === null && server.child.signalCode === null) await server.kill9();
    for (const receiver of receivers) await receiver.close();
    postgres.destroy();
  });

  const leads = (server) => metric(server, 'holdfast_delivery_leader');

  /** Nodes on one new database, one receiver, an event that all of them know, and who delivers. */
  const begin = async (count) => {
    const receiver = await new Receiver().listen();
    receivers.add(receiver);
    const store = makeDatabase(postgres.url);
    const nodes = [];
    for (let i = 0; i < count; i++) {
      const node = await start({ store, secret: nodes[0]?.secret, args: receiver.args });
      servers.add(node);
      nodes.push(node);
    }
    const organization = await new World(nodes[0]).organization();
    const event = await organization.event({ layout: layoutOf(block('A', 1, Array(6).fill(50))) });
    const views = nodes.map((node) => through(node, event));
    for (const view of views) await waitFor('the event on every node', async () => (await view.organization.buyer().get(view.path)).status === 200);
    const leader = await waitFor('somebody to deliver', async () => {
      for (const node of nodes) if ((await leads(node)) === 1) return node;
      return undefined;
    });
    return { receiver, nodes, views, leader, others: nodes.filter((node) => node !== leader) };
  };

  const holdSome = (view, from, count) =>
    inParallel(view.seats.slice(from, from + count), 4, (seat) => view.hold(view.organization.buyer(), seat));

  it('one of them delivers what all of them do, once; after kill -9 another goes on', async () => {
    const { receiver, nodes, views, leader, others } = await begin(2);
    await Promise.all(views.map((view, index) => holdSome(view, index * 50, 50)));
    await receiver.waitForCount(100);
    assert.equal(receiver.taken.length, 100, 'nothing comes twice while nothing goes wrong');
    for (const other of others) assert.equal(await leads(other), 0);

    await leader.kill9();
    const rest = views[nodes.indexOf(others[0])];
    await holdSome(rest, 100, 50);
    await receiver.waitForCount(150);
    assert.equal(await leads(others[0]), 1);
    assert.equal(receiver.distinct().length, 150);
    await others[0].stop();
    await clean(others[0]);
  });

  it('a node that is stopped hands over, without anything twice', async () => {
    const { receiver, nodes, views, leader, others } = await begin(2);
    await holdSome(views[0], 0, 20);
    await receiver.waitForCount(20);
    await waitUntilKnown(leader, 20);
    await leader.stop();
    await waitFor('the other one to deliver', async () => (await leads(others[0])) === 1);
    await holdSome(views[nodes.indexOf(others[0])], 20, 20);
    await receiver.waitForCount(40);
    assert.equal(receiver.taken.length, 40);
    await others[0].stop();
  });

  it('a node that freezes loses its turn and does not get in the way when it wakes', async () => {
    const { receiver, nodes, views, leader, others } = await begin(2);
    const rest = views[nodes.indexOf(others[0])];
    await holdSome(views[nodes.indexOf(leader)], 0, 10);
    await receiver.waitForCount(10);
    leader.child.kill('SIGSTOP');
    try {
      await holdSome(rest, 10, 20);
      await receiver.waitForCount(30, 60000);
    } finally {
      leader.child.kill('SIGCONT');
    }
    await waitFor('one that delivers', async () => (await leads(others[0])) === 1 && (await leads(leader)) === 0);
    await holdSome(rest, 30, 20);
    await receiver.waitForCount(50);
    expectOrdered(receiver.distinct());
    assert.equal(receiver.distinct().length, 50);
    await others[0].stop();
    await leader.stop();
    await clean(leader);
  });
});
