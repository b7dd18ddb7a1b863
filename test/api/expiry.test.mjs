// SPDX-License-Identifier: Apache-2.0
// Holds that run out: on time, audited, counted and told; also five thousand in the same moment, while others go on
// reserving. The waits of this file run side by side.

import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';

import { ok } from '../lib/client.mjs';
import { start } from '../lib/server.mjs';
import { openEventStream } from '../lib/sse.mjs';
import { now } from '../lib/token.mjs';
import { inParallel, waitFor, waitUntilUnix } from '../lib/wait.mjs';
import { block, layoutOf, metric, World } from '../lib/world.mjs';

describe('expiry', { concurrency: 12 }, () => {
  let server;
  let organization;

  before(async () => {
    server = await start();
    organization = await new World(server).organization();
  });
  after(async () => {
    await server.stop();
    const proof = await server.verify();
    assert.equal(proof.status, 0, proof.stdout + proof.stderr);
  });

  const quick = (ttl, grace, more = {}) =>
    organization.event({ policy: { hold_ttl_seconds: ttl, hold_max_seconds: 1200, release_grace_seconds: grace }, ...more });

  it('frees the seat by itself, not before held_until, and anybody can take it', async () => {
    const event = await quick(2, 0);
    const buyer = organization.buyer();
    const hold = await event.hold(buyer, event.seats[0]);
    await waitFor('the seat to be free', async () => (await event.status(event.seats[0].seat_id)) === 'available');
    assert.ok(Date.now() / 1000 >= hold.held_until_unix - 0.01, 'a hold lasts until held_until');
    assert.deepEqual(ok(await buyer.get('/api/holds')), []);
    const next = await event.hold(organization.buyer(), event.seats[0]);
    assert.notEqual(next.hold_id, hold.hold_id);
  });

  it('waits for the grace', async () => {
    const event = await quick(1, 6);
    const hold = await event.hold(organization.buyer(), event.seats[0]);
    await waitUntilUnix(hold.held_until_unix + 1.5);
    assert.equal(await event.status(event.seats[0].seat_id), 'held');
    await waitFor('the seat to be free', async () => (await event.status(event.seats[0].seat_id)) === 'available');
    assert.ok(Date.now() / 1000 >= hold.held_until_unix + 5.99, 'not before held_until + grace');
  });

  it('is audited as seat_hold_expired with its reason and how long it was held', async () => {
    const event = await quick(1, 0);
    const hold = await event.hold(organization.buyer(), event.seats[0]);
    const row = await waitFor('the audit row', async () => (await event.audit({ action: 'seat_hold_expired' }))[0]);
    assert.equal(row.entity_id, hold.hold_id);
    assert.equal(row.seat_id, hold.seat_id);
    assert.equal(row.reason, 'ttl_expired');
    assert.ok(row.held_duration_seconds >= 1 && row.held_duration_seconds <= 30, `held for ${row.held_duration_seconds}`);
    assert.equal(row.actor_id, null, 'nobody did it');
    assert.equal(row.role, 'system');
  });

  it('is counted and told to the owner and, without names, to everybody', async () => {
    const event = await quick(1, 0);
    const [owner, other] = [organization.buyer(), organization.buyer()];
    const [expired, released] = [await metric(server, 'holdfast_hold_expired_total'), await metric(server, 'holdfast_releases_total', 'scenario="A"')];
    const [mine, theirs] = [await openEventStream(event, owner), await openEventStream(event, other)];
    const hold = await event.hold(owner, event.seats[3]);
    const news = await mine.waitEvent('hold_released', (data) => data.hold_id === hold.hold_id);
    assert.equal(news.json.reason, 'ttl_expired');
    const [, , reason] = await theirs.waitSeat(3, 'available');
    if (reason !== undefined) assert.equal(reason, 'ttl_expired');
    assert.equal(theirs.of('hold_released').length, 0);
    assert.ok(!theirs.text.includes(owner.user) && !theirs.text.includes(hold.hold_id));
    assert.ok((await metric(server, 'holdfast_hold_expired_total')) >= expired + 1);
    assert.ok((await metric(server, 'holdfast_releases_total', 'scenario="A"')) >= released + 1);
    mine.close();
    theirs.close();
  });

  it('does not come for a hold that was extended', async () => {
    const event = await quick(5, 0);
    ok(await event.patch({ policy: { checkout_extension_seconds: 60 } }));
    const buyer = organization.buyer();
    const [first, second] = [await event.hold(buyer, event.seats[0]), await event.hold(buyer, event.seats[1])];
    ok(await buyer.post(`/api/holds/${first.hold_id}/extend`));
    await waitFor('the other seat to be free', async () => (await event.status(second.seat_id)) === 'available');
    assert.equal(await event.status(first.seat_id), 'held');
    assert.equal(ok(await buyer.get(`/api/holds/${first.hold_id}`)).held_until_unix, first.held_until_unix + 60);
  });

  it('drops the seat and its price from a pending checkout, and the last one ends it', async () => {
    const event = await organization.event({ policy: { hold_ttl_seconds: 14, hold_max_seconds: 14, release_grace_seconds: 0 } });
    const buyer = organization.buyer();
    const late = await event.hold(buyer, event.seats[0]);
    ok(await event.patch({ policy: { hold_ttl_seconds: 5, hold_max_seconds: 5 } }));
    await event.hold(buyer, event.seats[1]);
    const { checkout_id: id, total_cents: total } = ok(await event.checkout(buyer), 201);
    assert.equal(total, 2000);
    const read = async () => ok(await buyer.get(`/api/checkouts/${id}`));
    const rest = await waitFor('the first seat to leave the checkout', async () => {
      const now1 = await read();
      return now1.seats.length === 1 ? now1 : undefined;
    });
    assert.deepEqual([rest.status, rest.total_cents, rest.seats[0].seat_id], ['pending_payment', 1000, late.seat_id]);
    await waitFor('the checkout to expire', async () => (await read()).status === 'expired');
  });
});

// On a server of its own: this is a load that others would feel.
describe('expiry in bulk', () => {
  it('five thousand due in the same moment are all released soon, and reserves are answered meanwhile', async () => {
    const server = await start();
    const organization = await new World(server).organization();
    const event = await organization.event({
      policy: { hold_ttl_seconds: 10, release_grace_seconds: 0 }, layout: layoutOf(block('A', 1, Array(51).fill(100))),
    });
    const other = await organization.event({ layout: layoutOf(block('B', 1, [200])) });
    const groups = Array.from({ length: 100 }, (_, index) => event.seats.slice(index * 50, index * 50 + 50));
    const holds = await inParallel(groups, 16, async (seats) => ok(await event.holdMany(organization.buyer(), seats), 201).holds);
    const due = Math.max(...holds.flat().map((hold) => hold.held_until_unix));
    const first = Math.min(...holds.flat().map((hold) => hold.held_until_unix));
    assert.ok(now() < first, 'all of them are held at once');
    await waitUntilUnix(first - 0.2);
    let finished = false;
    const busy = (async () => {
      const buyer = organization.buyer();
      let answered = 0;
      for (let index = 0; !finished && index < other.seats.length; index++) {
        ok(await other.reserve(buyer, other.seats[index], {}), 201);
        answered++;
      }
      return answered;
    })();
    await waitFor('all five thousand seats to be free', async () => (await event.occupancy()).available === 5100, undefined, 50);
    const freedAt = Date.now() / 1000;
    finished = true;
    assert.ok((await busy) > 0, 'reserves went on');
    assert.ok(freedAt - due < 30, `released ${freedAt - due} s after the last was due`);
    assert.equal((await event.occupancy()).held, 0);
    const [again] = groups;
    ok(await event.holdMany(organization.buyer(), again), 201);
    await server.stop();
    const proof = await server.verify();
    assert.equal(proof.status, 0, proof.stdout + proof.stderr);
  });
});
