// SPDX-License-Identifier: Apache-2.0
// The engine's figures for admins, and a buyer's own checkouts: what they show, and what they never show.

import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';

import { fails, ok } from '../lib/client.mjs';
import { start } from '../lib/server.mjs';
import { openEventStream } from '../lib/sse.mjs';
import { uuid } from '../lib/token.mjs';
import { block, buy, layoutOf, metric, World } from '../lib/world.mjs';

const PATH = '/api/admin/figures';

describe('figures', () => {
  let server;
  let world;
  let organization;

  before(async () => {
    server = await start();
    world = new World(server);
    organization = await world.organization();
  });
  after(() => server.stop());

  it('are those of /metrics, and follow what happens', async () => {
    const event = await organization.event();
    const [one, two] = [organization.buyer(), organization.buyer()];
    const first = ok(await organization.admin.get(PATH));
    const hold = await event.hold(one, event.seats[0]);
    fails(await event.reserve(two, event.seats[0]), 409, 'seat_held_by_another_user');
    ok(await one.del(`/api/holds/${hold.hold_id}`));
    await event.hold(two, event.seats[1]);
    const second = ok(await organization.admin.get(PATH));
    assert.equal(second.started_at, first.started_at);
    assert.equal(second.holds.granted - first.holds.granted, 2);
    assert.equal(second.holds.conflicts - first.holds.conflicts, 1);
    assert.equal(second.releases.user_cancelled - first.releases.user_cancelled, 1);
    assert.equal(second.holds.active - first.holds.active, 1);
    assert.equal(second.holds.granted, await metric(server, 'holdfast_hold_success_total'));
    assert.equal(second.latency.at(-1).seconds, null);
    assert.ok(second.latency.at(-1).count - first.latency.at(-1).count >= 4, 'every command was measured');
    second.latency.forEach((bucket, i) => assert.ok(i === 0 || bucket.count >= second.latency[i - 1].count));
    assert.deepEqual(second.tiers, { hot: { state: 'up' }, warm: { state: 'none', breaker: 'none' }, store: { state: 'up' } });
  });

  it('are for admins and operators alone', async () => {
    fails(await organization.buyer().get(PATH), 403, 'forbidden');
    fails(await organization.agent().get(PATH), 403, 'forbidden');
    fails(await world.anonymous().get(PATH), 401, 'unauthorized');
    ok(await world.operator().get(PATH));
    ok(await world.caller('operator', organization.id).get(PATH));
  });

  it('have no id, name or price of anybody in them', async () => {
    const event = await organization.event({ name: 'Nobody may read this', layout: layoutOf(block('A', 1, [4], { price: 7654321 })) });
    const buyer = organization.buyer();
    await buy(event, buyer, [event.seats[0]]);
    const { text } = await (await world.organization()).admin.get(PATH);
    for (const secret of [organization.id, event.id, buyer.user, event.seats[0].seat_id, 'Nobody may read this', '7654321']) {
      assert.ok(!text.includes(secret), secret);
    }
    assert.doesNotMatch(text, /[0-9a-f]{8}-[0-9a-f]{4}-/);
  });
});

describe('my checkouts', () => {
  let server;
  let world;
  let organization;

  before(async () => {
    server = await start();
    world = new World(server);
    organization = await world.organization();
  });
  after(() => server.stop());

  const idsOf = (rows) => rows.map((row) => row.checkout_id);

  it('are mine alone, newest first, with the name of their event', async () => {
    const event = await organization.event({ name: 'Night one' });
    const [me, other] = [organization.buyer(), organization.buyer()];
    const first = await buy(event, me, [event.seats[0]]);
    await buy(event, other, [event.seats[1]]);
    const second = await buy(event, me, [event.seats[2], event.seats[3]]);
    const mine = await me.get('/api/checkouts');
    assert.deepEqual(idsOf(ok(mine)), [second.checkout_id, first.checkout_id]);
    assert.equal(mine.body.next, null);
    const [newest] = ok(mine);
    assert.equal(newest.event_name, 'Night one');
    assert.equal(newest.status, 'completed');
    assert.equal(newest.seats, 2);
    assert.equal(newest.total_cents, second.total_cents);
    assert.ok(!mine.text.includes(other.user));
    assert.deepEqual(ok(await organization.buyer().get('/api/checkouts')), []);
  });

  it('keep their name when the event is over', async () => {
    const event = await organization.event({ name: 'Long gone', status: 'live' });
    const me = organization.buyer();
    const bought = await buy(event, me, [event.seats[0]]);
    ok(await event.patch({ status: 'archived' }));
    fails(await me.get(event.path), 404, 'event_not_found');
    assert.equal(ok(await me.get('/api/checkouts'))[0].event_name, 'Long gone');
    const one = ok(await me.get(`/api/checkouts/${bought.checkout_id}`));
    assert.equal(one.event_name, 'Long gone');
    assert.equal(one.tickets[0].seat_number, event.seats[0].seat_number);
  });

  it('come in pages that end', async () => {
    const event = await organization.event();
    const me = organization.buyer();
    const made = [];
    for (const seat of event.seats.slice(0, 5)) made.unshift((await buy(event, me, [seat])).checkout_id);
    const seen = [];
    let after1 = '';
    do {
      const page = await me.get(`/api/checkouts?limit=2${after1}`);
      assert.ok(ok(page).length <= 2);
      seen.push(...idsOf(ok(page)));
      after1 = page.body.next ? `&after=${page.body.next}` : null;
    } while (after1);
    assert.deepEqual(seen, made);
    assert.equal(ok(await me.get('/api/checkouts?status=failed')).length, 0);
    assert.equal(ok(await me.get(`/api/checkouts?event_id=${event.id}`)).length, 5);
    assert.equal(ok(await me.get(`/api/checkouts?event_id=${uuid()}`)).length, 0);
    fails(await me.get('/api/checkouts?status=nonsense'), 400, 'invalid_request');
    fails(await me.get('/api/checkouts?after=x'), 400, 'invalid_request');
  });

  it('of another user are for agents, within the organization', async () => {
    const event = await organization.event();
    const me = organization.buyer();
    const bought = await buy(event, me, [event.seats[0]]);
    fails(await organization.buyer().get(`/api/checkouts?user_id=${me.user}`), 403, 'forbidden');
    assert.deepEqual(idsOf(ok(await organization.agent().get(`/api/checkouts?user_id=${me.user}`))), [bought.checkout_id]);
    assert.deepEqual(ok(await organization.agent().get('/api/checkouts')), []);
    const elsewhere = await world.organization();
    assert.deepEqual(ok(await elsewhere.agent().get(`/api/checkouts?user_id=${me.user}`)), []);
    assert.deepEqual(ok(await elsewhere.buyer(me.user).get('/api/checkouts')), [], 'the same id elsewhere is another person');
  });
});

describe('what changes under a watcher', () => {
  let server;
  let organization;

  before(async () => {
    server = await start();
    organization = await new World(server).organization();
  });
  after(() => server.stop());

  it('gets a snapshot and another layout_etag, for a layout and a price; an event gets the snapshot', async () => {
    const event = await organization.event();
    const buyer = organization.buyer();
    const tag = async () => ok(await buyer.get(`${event.path}/availability`)).layout_etag;
    const stream = await openEventStream(event, buyer);
    let told = 0;
    const nextSnapshot = () => {
      told++;
      return stream.wait(`snapshot ${told}`, ({ events }) => events.filter((one) => one.event === 'snapshot').length >= told);
    };
    await nextSnapshot();
    const tags = [await tag()];
    assert.equal(tags[0], (await buyer.get(`${event.path}/layout`)).headers.etag);
    ok(await organization.admin.put(`${event.adminPath}/layout`, layoutOf(block('A', 1, [10, 10], { name: 'New' }))));
    await nextSnapshot();
    tags.push(await tag());
    const [{ block_id: blockId }] = ok(await buyer.get(event.path)).blocks;
    ok(await organization.admin.patch(`${event.adminPath}/blocks/${blockId}`, { price_cents: 999 }));
    await nextSnapshot();
    tags.push(await tag());
    assert.equal(new Set(tags).size, 3, `each is another: ${tags}`);
    ok(await event.patch({ policy: { hold_ttl_seconds: 123 } }));
    await nextSnapshot();
    assert.equal(await tag(), tags[2]);
    stream.close();
  });
});
