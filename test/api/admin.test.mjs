// SPDX-License-Identifier: Apache-2.0
// Administration: organizations, events and their transitions, layouts, blocks, blocking, lists with cursors, release in
// batch, audit, registry, occupancy over time, analytics.

import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';

import { fails, ok } from '../lib/client.mjs';
import { start } from '../lib/server.mjs';
import { hasKeys, TIME, UUID, UUID7 } from '../lib/shape.mjs';
import { uuid } from '../lib/token.mjs';
import { waitFor } from '../lib/wait.mjs';
import { block, buy, layoutOf, World } from '../lib/world.mjs';

describe('admin', { concurrency: 8 }, () => {
  let server;
  let world;
  let organization;
  let admin;

  before(async () => {
    server = await start();
    world = new World(server);
    organization = await world.organization();
    admin = organization.admin;
  });
  after(async () => {
    await server.stop();
    const proof = await server.verify();
    assert.equal(proof.status, 0, proof.stdout + proof.stderr);
  });

  /** All pages of a list. */
  const pages = async (caller, path, query = {}) => {
    const rows = [];
    let after1;
    let count = 0;
    do {
      const response = await caller.get(`${path}?${new URLSearchParams({ ...query, ...(after1 ? { after: after1 } : {}) })}`);
      rows.push(...ok(response));
      after1 = response.body.next;
      count++;
      assert.ok(count < 200, 'a cursor comes to an end');
    } while (after1);
    return { rows, count };
  };

  describe('organizations', { concurrency: 8 }, () => {
    it('are made by an operator, with an id of ours', async () => {
      const data = ok(await world.operator().post('/api/admin/organizations', { name: 'Théâtre Ünïcode 劇場' }), 201);
      assert.match(data.organization_id ?? data.id, UUID7);
      assert.equal(data.name, 'Théâtre Ünïcode 劇場');
    });

    it('bad names are refused', async () => {
      for (const body of [{}, { name: '' }, { name: 5 }, { name: null }, { name: 'x'.repeat(256) }, { name: 'a\u0000b' }, []]) {
        fails(await world.operator().post('/api/admin/organizations', body), 400, 'invalid_request');
      }
    });

    it('an admin, an agent and a buyer cannot make one', async () => {
      for (const caller of [admin, organization.agent(), organization.buyer()]) {
        fails(await caller.post('/api/admin/organizations', { name: 'Mine' }), 403, 'forbidden');
      }
    });

    it('an operator of an organization administrates it like its admin', async () => {
      const operator = world.caller('operator', organization.id);
      const made = ok(await operator.post('/api/admin/events', { name: 'By operator' }), 201);
      assert.ok(ok(await admin.get('/api/admin/events')).some((event) => event.event_id === made.event_id));
    });
  });

  describe('events', { concurrency: 8 }, () => {
    it('are created as drafts with all fields, and listed to admins', async () => {
      const own = await world.organization();
      const data = ok(await own.admin.post('/api/admin/events', {
        name: 'Gala', sale_start: '2026-01-01T00:00:00Z', sale_end: '2036-01-01T00:00:00Z', currency: 'CHF', policy: { hold_ttl_seconds: 90 },
      }), 201);
      hasKeys(data, ['event_id', 'name', 'status', 'sale_start', 'sale_end', 'currency', 'policy']);
      assert.match(data.event_id, UUID7);
      assert.deepEqual([data.name, data.status, data.sale_start, data.sale_end, data.currency, data.policy.hold_ttl_seconds],
        ['Gala', 'draft', '2026-01-01T00:00:00Z', '2036-01-01T00:00:00Z', 'CHF', 90]);
      const list = ok(await own.admin.get('/api/admin/events'));
      assert.deepEqual(list.map((event) => event.event_id), [data.event_id]);
    });

    it('name, sale window and policy change one by one, the rest stays', async () => {
      const event = await organization.event({ policy: { hold_ttl_seconds: 90, release_grace_seconds: 3 } });
      ok(await event.patch({ name: 'Renamed' }));
      const changed = ok(await event.patch({ policy: { hold_ttl_seconds: 45 } }));
      assert.equal(changed.name, 'Renamed');
      assert.equal(changed.policy.hold_ttl_seconds, 45);
      assert.equal(changed.policy.release_grace_seconds, 3, 'other fields of the policy stay');
      assert.equal(changed.status, 'published');
      const hold = await event.hold(organization.buyer(), event.seats[0]);
      assert.ok(hold.expires_in_seconds <= 45);
      assert.ok((await event.audit({ action: 'event_changed' })).length >= 2);
    });

    it('every bad field is refused with a message that names it', async () => {
      const event = await organization.event();
      const cases = [
        [{ name: '' }, /name/], [{ name: 5 }, /name/], [{ name: 'x'.repeat(256) }, /name/],
        [{ sale_start: 'tomorrow' }, /sale_start/], [{ sale_end: 5 }, /sale_end/], [{ sale_start: '2026-13-01T00:00:00Z' }, /sale_start/],
        [{ sale_start: '2030-01-02T00:00:00Z', sale_end: '2030-01-01T00:00:00Z' }, /sale/],
        [{ status: 'open' }, /status/], [{ status: 5 }, /status/],
        [{ policy: 5 }, /policy/], [{ policy: [] }, /policy/],
        [{ policy: { hold_ttl_seconds: 0 } }, /hold_ttl_seconds/], [{ policy: { hold_ttl_seconds: 3601 } }, /hold_ttl_seconds/],
        [{ policy: { hold_ttl_seconds: '60' } }, /hold_ttl_seconds/], [{ policy: { hold_ttl_seconds: 1.5 } }, /hold_ttl_seconds/],
        [{ policy: { hold_ttl_seconds: 300, hold_max_seconds: 299 } }, /hold_max_seconds/],
        [{ policy: { release_grace_seconds: 61 } }, /release_grace_seconds/], [{ policy: { release_grace_seconds: -1 } }, /release_grace_seconds/],
        [{ policy: { max_seats_per_user: -1 } }, /max_seats_per_user/], [{ policy: { rate_limit_holds: -1 } }, /rate_limit_holds/],
        [{ policy: { checkout_extension_seconds: -5 } }, /checkout_extension_seconds/],
        [{ policy: { payment_max_seconds: -5 } }, /payment_max_seconds/],
        [{ policy: { forbid_single_seat_gaps: 'no' } }, /forbid_single_seat_gaps/],
      ];
      const before1 = ok(await admin.get('/api/admin/events')).find((entry) => entry.event_id === event.id);
      for (const [body, names] of cases) {
        const error = fails(await event.patch(body), 400, 'invalid_request', JSON.stringify(body));
        assert.match(error.message + JSON.stringify(error.details), names, JSON.stringify(body));
      }
      const after1 = ok(await admin.get('/api/admin/events')).find((entry) => entry.event_id === event.id);
      assert.deepEqual(after1, before1, 'nothing changed');
      for (const body of [{}, { name: 5 }, { name: 'x', currency: 'euro' }, { name: 'x', policy: { hold_ttl_seconds: 0 } }, []]) {
        fails(await admin.post('/api/admin/events', body), 400, 'invalid_request');
      }
    });

    it('a policy that contradicts what is stored is refused too', async () => {
      const event = await organization.event({ policy: { hold_ttl_seconds: 60, hold_max_seconds: 100 } });
      fails(await event.patch({ policy: { hold_ttl_seconds: 101 } }), 400, 'invalid_request');
      fails(await event.patch({ policy: { hold_max_seconds: 59 } }), 400, 'invalid_request');
    });

    it('unknown events are 404 for every admin call', async () => {
      const id = uuid();
      fails(await admin.patch(`/api/admin/events/${id}`, { name: 'x' }), 404, 'event_not_found');
      fails(await admin.put(`/api/admin/events/${id}/layout`, layoutOf(block('A', 1, [1]))), 404, 'event_not_found');
      fails(await admin.get(`/api/admin/events/${id}/holds`), 404, 'event_not_found');
      fails(await admin.get(`/api/admin/events/${id}/registry`), 404, 'event_not_found');
      fails(await admin.post(`/api/admin/events/${id}/registry/reconcile`), 404, 'event_not_found');
      fails(await admin.get(`/api/admin/events/${id}/occupancy/history`), 404, 'event_not_found');
      fails(await admin.get(`/api/admin/events/${id}/analytics`), 404, 'event_not_found');
      fails(await admin.post(`/api/admin/events/${id}/seats/block`, { seat_ids: [uuid()] }), 404, 'event_not_found');
      fails(await admin.patch(`/api/admin/events/${id}/blocks/${uuid()}`, { name: 'x' }), 404, 'event_not_found');
    });

    it('transitions: every allowed one works, every other is invalid_transition', async () => {
      const all = ['draft', 'published', 'live', 'archived', 'cancelled'];
      const allowed = { draft: ['published', 'cancelled'], published: ['live', 'cancelled'], live: ['archived', 'cancelled'], archived: [], cancelled: [] };
      const wayTo = { draft: [], published: ['published'], live: ['published', 'live'], archived: ['published', 'live', 'archived'], cancelled: ['cancelled'] };
      for (const from of all) {
        for (const to of all.filter((state) => state !== from)) {
          const event = await organization.event({ status: 'draft', layout: layoutOf(block('A', 1, [1])) });
          for (const step of wayTo[from]) ok(await event.patch({ status: step }));
          const response = await event.patch({ status: to });
          if (allowed[from].includes(to)) assert.equal(ok(response).status, to);
          else fails(response, 409, 'invalid_transition');
        }
      }
    });

    it('archiving a live event releases its holds as admin_override and cancels its pending checkouts', async () => {
      const event = await organization.event({ status: 'live' });
      const [holder, paying] = [organization.buyer(), organization.buyer()];
      await event.hold(holder, event.seats[0]);
      await event.hold(paying, event.seats[1]);
      const checkout = ok(await event.checkout(paying), 201);
      ok(await event.patch({ status: 'archived' }));
      assert.deepEqual(ok(await holder.get('/api/holds')), []);
      assert.equal(ok(await paying.get(`/api/checkouts/${checkout.checkout_id}`)).status, 'cancelled');
      const rows = await event.audit({ action: 'seat_released' });
      assert.deepEqual(rows.map((row) => row.reason), ['admin_override', 'admin_override']);
    });
  });

  describe('layouts', { concurrency: 4 }, () => {
    it('rows of different lengths, labels and positions are kept', async () => {
      const event = await organization.event({
        layout: {
          name: 'Odd hall',
          stage: { x: 0, y: -10, label: 'Stage' },
          blocks: [{ section: 'C', subsection: 3, name: 'Corner', price_cents: 0, rows: [
            { label: 'AA', seats: ['1', '3', '5'], x: 1.5, y: 2, dx: 1, dy: 0 }, { label: 'BB', seats: 1 }, { label: 'CC', seats: 7, x: -3, y: 0.25 },
          ] }],
        },
      });
      assert.equal(event.seats.length, 11);
      assert.deepEqual(event.seats.map((seat) => `${seat.block} ${seat.row} ${seat.seat_number}`).slice(0, 4), ['C-3 AA 1', 'C-3 AA 3', 'C-3 AA 5', 'C-3 BB 1']);
      const { data } = (await organization.buyer().get(`${event.path}/layout`)).body;
      assert.equal(data.name, 'Odd hall');
      assert.ok(data.stage !== undefined && data.stage !== null);
    });

    it('a hundred thousand seats fit, one more does not', async () => {
      // On a server of its own: the store writes them in one go, and on a slow machine others would wait too long for it.
      const alone = await start();
      const large = await new World(alone).organization();
      const rows = Array(500).fill(100);
      const huge = layoutOf(block('A', 1, rows), block('B', 1, rows));
      const event = await large.event({ status: 'draft' });
      ok(await large.admin.put(`${event.adminPath}/layout`, huge, { limitMs: 60000 }));
      ok(await event.patch({ status: 'published' }));
      const occupancy = await event.occupancy();
      assert.equal(occupancy.total, 100000);
      assert.equal(ok(await large.buyer().get(`${event.path}/availability`)).count, 100000);
      assert.equal((await event.list()).length, 100000);
      const data = ok(await event.best(large.buyer(), { quantity: 4, section: 'B' }), 201);
      assert.equal(data.holds.length, 4);
      const over = await large.event({ status: 'draft' });
      fails(await large.admin.put(`${over.adminPath}/layout`, layoutOf(block('A', 1, rows), block('B', 1, [...rows, 1])), { limitMs: 60000 }), 400, 'invalid_request');
      await alone.stop();
    });

    it('is replaced as long as no seat was ever held, then is in use for ever', async () => {
      const event = await organization.event();
      ok(await admin.put(`${event.adminPath}/layout`, layoutOf(block('D', 1, [4]))));
      await event.load();
      assert.equal(event.seats.length, 4);
      const buyer = organization.buyer();
      const hold = await event.hold(buyer, event.seats[0]);
      fails(await admin.put(`${event.adminPath}/layout`, layoutOf(block('E', 1, [4]))), 409, 'layout_in_use');
      ok(await buyer.del(`/api/holds/${hold.hold_id}`));
      fails(await admin.put(`${event.adminPath}/layout`, layoutOf(block('E', 1, [4]))), 409, 'layout_in_use');
      assert.equal((await event.list()).length, 4);
      assert.ok((await event.audit({ action: 'layout_changed' })).length >= 1);
    });

    it('bad documents are refused with a message that says where, and the old layout stays', async () => {
      const event = await organization.event();
      const good = () => block('A', 1, [2]);
      const cases = [
        [{}, /blocks/], [{ name: 'x', blocks: {} }, /blocks/], [{ name: 'x', blocks: [] }, /blocks/], [{ blocks: [5] }, /block/],
        [layoutOf({ ...good(), section: 'a' }), /section/], [layoutOf({ ...good(), section: 'ABCD' }), /section/], [layoutOf({ ...good(), section: '' }), /section/],
        [layoutOf({ ...good(), section: 1 }), /section/], [layoutOf({ ...good(), subsection: 0 }), /subsection/], [layoutOf({ ...good(), subsection: '1' }), /subsection/],
        [layoutOf({ ...good(), subsection: -1 }), /subsection/], [layoutOf({ ...good(), price_cents: -1 }), /price_cents/],
        [layoutOf({ ...good(), price_cents: 1.5 }), /price_cents/], [layoutOf({ ...good(), price_cents: '5' }), /price_cents/],
        [layoutOf({ ...good(), capacity: -1 }), /capacity/], [layoutOf({ ...good(), capacity: 'many' }), /capacity/],
        [layoutOf({ ...good(), rows: [] }), /rows/], [layoutOf({ ...good(), rows: 5 }), /rows/], [layoutOf({ ...good(), rows: [{ label: '1' }] }), /seats/],
        [layoutOf({ ...good(), rows: [{ label: '1', seats: 0 }] }), /seats/], [layoutOf({ ...good(), rows: [{ label: '1', seats: -4 }] }), /seats/],
        [layoutOf({ ...good(), rows: [{ label: '1', seats: 1e9 }] }), /seats/], [layoutOf({ ...good(), rows: [{ label: '1', seats: [] }] }), /seats/],
        [layoutOf({ ...good(), rows: [{ label: '1', seats: ['1', null] }] }), /seat/], [layoutOf({ ...good(), rows: [{ label: '1', seats: ['1', '1'] }] }), /seat/],
        [layoutOf({ ...good(), rows: [{ label: 5, seats: 2 }] }), /label/], [layoutOf({ ...good(), rows: [{ label: '1', seats: 2 }, { label: '1', seats: 2 }] }), /label|row/],
        [layoutOf({ ...good(), rows: [{ label: '1', seats: 2, x: 'left' }] }), /x/], [layoutOf(good(), good()), /A-1|section|block/],
      ];
      for (const [document, names] of cases) {
        const error = fails(await admin.put(`${event.adminPath}/layout`, document), 400, 'invalid_request', JSON.stringify(document).slice(0, 200));
        assert.match(error.message + JSON.stringify(error.details), names, JSON.stringify(document).slice(0, 200));
      }
      assert.deepEqual(await event.list(), event.seats);
    });

    it('each of x, y, dx and dy may stand alone', async () => {
      for (const place of [{ x: -3 }, { y: 4 }, { dx: 2 }, { dy: 1 }]) {
        await organization.event({ status: 'draft', layout: layoutOf({ ...block('A', 1, [1]), rows: [{ label: '1', seats: 2, ...place }] }) });
      }
    });

    it('sections go beyond Z', async () => {
      const event = await organization.event({ layout: layoutOf(block('Z', 1, [1]), block('AA', 2, [1]), block('ZZZ', 10, [1])) });
      assert.deepEqual(event.seats.map((seat) => seat.block), ['Z-1', 'AA-2', 'ZZZ-10']);
    });
  });

  describe('blocks', { concurrency: 8 }, () => {
    it('change name, price and capacity', async () => {
      const event = await organization.event({ layout: layoutOf(block('A', 1, [5])) });
      const [{ block_id: id }] = ok(await admin.get(event.path)).blocks;
      assert.match(id, UUID);
      const changed = ok(await admin.patch(`${event.adminPath}/blocks/${id}`, { name: 'New name', price_cents: 77, capacity: 1 }));
      assert.deepEqual([changed.name, changed.price_cents, changed.capacity], ['New name', 77, 1]);
      const hold = await event.hold(organization.buyer(), event.seats[0]);
      assert.equal(hold.block_name, 'New name');
      fails(await event.reserve(organization.buyer(), event.seats[1]), 409, 'block_at_capacity');
      ok(await admin.patch(`${event.adminPath}/blocks/${id}`, { capacity: 2 }));
      ok(await event.reserve(organization.buyer(), event.seats[1]), 201);
      for (const body of [{ price_cents: -1 }, { price_cents: 'x' }, { capacity: -1 }, { name: '' }, { name: 5 }, []]) {
        fails(await admin.patch(`${event.adminPath}/blocks/${id}`, body), 400, 'invalid_request');
      }
      fails(await admin.patch(`${event.adminPath}/blocks/${uuid()}`, { name: 'x' }), 404, 'not_found');
    });

    it('a capacity cannot be lowered below what is taken', async () => {
      const event = await organization.event({ layout: layoutOf(block('A', 1, [5])) });
      const [{ block_id: id }] = ok(await admin.get(event.path)).blocks;
      const buyer = organization.buyer();
      ok(await event.holdMany(buyer, event.seats.slice(0, 3)), 201);
      fails(await admin.patch(`${event.adminPath}/blocks/${id}`, { capacity: 2, name: 'Never' }), 409, 'block_at_capacity');
      const [{ capacity, name }] = ok(await admin.get(event.path)).blocks;
      assert.deepEqual([capacity, name], [5, 'Section A 1'], 'nothing of it was changed');
      ok(await admin.patch(`${event.adminPath}/blocks/${id}`, { capacity: 3 }));
      fails(await event.reserve(buyer, event.seats[3]), 409, 'block_at_capacity');
      assert.equal((await event.occupancy()).held, 3);
    });
  });

  describe('blocking seats', { concurrency: 8 }, () => {
    const results = (data) => data.results;

    it('blocks free seats, releases held ones first, refuses sold ones, seat by seat', async () => {
      const event = await organization.event();
      const buyer = organization.buyer();
      const hold = await event.hold(buyer, event.seats[1]);
      await buy(event, organization.buyer(), [event.seats[2]]);
      const unknown = uuid();
      const data = ok(await admin.post(`${event.adminPath}/seats/block`, { seat_ids: [...event.seats.slice(0, 3).map((seat) => seat.seat_id), unknown], notes: 'camera' }));
      const list = results(data);
      assert.equal(list.length, 4);
      const of = (id) => list.find((entry) => entry.seat_id === id);
      assert.deepEqual((await event.list()).slice(0, 3).map((seat) => seat.status), ['blocked', 'blocked', 'sold']);
      assert.equal(of(event.seats[2].seat_id).code, 'seat_not_available');
      assert.equal(of(unknown).code, 'seat_not_found');
      assert.ok(!of(event.seats[0].seat_id).code);
      assert.deepEqual(ok(await buyer.get('/api/holds')), []);
      const [row] = (await event.audit({ action: 'seat_released' })).filter((entry) => entry.entity_id === hold.hold_id);
      assert.equal(row.reason, 'admin_override');
      assert.equal((await event.audit({ action: 'seat_blocked' })).length, 2);
      fails(await event.reserve(organization.buyer(), event.seats[0]), 409, 'seat_not_available');
    });

    it('when not one of them can be blocked, that is an error of its own', async () => {
      const event = await organization.event();
      await buy(event, organization.buyer(), [event.seats[0]]);
      const { details } = fails(await admin.post(`${event.adminPath}/seats/block`, { seat_ids: [event.seats[0].seat_id] }), 409, 'seat_not_available');
      assert.deepEqual(details.seats.map((seat) => [seat.seat_id, seat.code, seat.current_status]), [[event.seats[0].seat_id, 'seat_not_available', 'sold']]);
      fails(await admin.post(`${event.adminPath}/seats/block`, { seat_ids: [uuid()] }), 404, 'seat_not_found');
    });

    it('unblocking makes them available, and both are idempotent', async () => {
      const event = await organization.event();
      const ids = event.seats.slice(0, 2).map((seat) => seat.seat_id);
      for (let i = 0; i < 2; i++) ok(await admin.post(`${event.adminPath}/seats/block`, { seat_ids: ids }));
      assert.equal((await event.occupancy()).blocked, 2);
      for (let i = 0; i < 2; i++) ok(await admin.post(`${event.adminPath}/seats/unblock`, { seat_ids: ids }));
      assert.equal((await event.occupancy()).available, 20);
      ok(await event.reserve(organization.buyer(), event.seats[0]), 201);
      ok(await admin.post(`${event.adminPath}/seats/unblock`, { seat_ids: ids }));
      assert.equal((await event.occupancy()).held, 1, 'unblocking a held seat does nothing to it');
    });

    it('a seat with a payment in flight is not blocked', async () => {
      const event = await organization.event();
      const buyer = organization.buyer();
      await event.hold(buyer, event.seats[0]);
      const checkout = ok(await event.checkout(buyer), 201);
      const paying = buyer.post(`/api/checkouts/${checkout.checkout_id}/complete`, { payment_token: 'tok_slow' });
      await waitFor('the payment to be under way', async () => ok(await buyer.get(`/api/checkouts/${checkout.checkout_id}`)).status === 'processing');
      fails(await admin.post(`${event.adminPath}/seats/block`, { seat_ids: [event.seats[0].seat_id] }), 409, 'payment_in_progress');
      const both = results(ok(await admin.post(`${event.adminPath}/seats/block`, { seat_ids: [event.seats[0].seat_id, event.seats[1].seat_id] })));
      const codes = new Map(both.map((entry) => [entry.seat_id, entry.code]));
      assert.equal(codes.get(event.seats[0].seat_id), 'payment_in_progress');
      assert.equal(codes.get(event.seats[1].seat_id), undefined);
      assert.equal((await event.occupancy()).blocked, 1);
      await paying;
      await waitFor('the seat to be sold', async () => (await event.status(event.seats[0].seat_id)) === 'sold');
    });

    it('wrong shapes are refused', async () => {
      const event = await organization.event();
      for (const body of [{}, { seat_ids: [] }, { seat_ids: 'x' }, { seat_ids: ['x'] }, { seat_ids: [5] }, { seat_ids: [uuid()], notes: 5 }]) {
        fails(await admin.post(`${event.adminPath}/seats/block`, body), 400, 'invalid_request');
        fails(await admin.post(`${event.adminPath}/seats/unblock`, body), 400, 'invalid_request');
      }
    });
  });

  describe('lists', { concurrency: 8 }, () => {
    it('holds show who and until when, filtered by user and block, page by page', async () => {
      const event = await organization.event({ layout: layoutOf(block('A', 1, [130]), block('B', 1, [40])) });
      const [first, second] = [organization.buyer(), organization.buyer()];
      for (let i = 0; i < 3; i++) ok(await event.holdMany(first, event.seats.slice(i * 40, i * 40 + 40)), 201);
      const hold = await event.hold(second, event.seats[140]);
      const { rows, count } = await pages(admin, `${event.adminPath}/holds`);
      assert.equal(rows.length, 121);
      assert.ok(count > 1, 'more than one page');
      assert.equal(new Set(rows.map((row) => row.hold_id)).size, 121, 'no row twice');
      for (const row of rows.slice(0, 5)) {
        hasKeys(row, ['hold_id', 'seat_id', 'user_id', 'held_until']);
        assert.match(row.held_until, TIME);
      }
      const byUser = await pages(admin, `${event.adminPath}/holds`, { user_id: second.user });
      assert.deepEqual(byUser.rows.map((row) => row.hold_id), [hold.hold_id]);
      const byBlock = await pages(admin, `${event.adminPath}/holds`, { block: 'B-1' });
      assert.deepEqual(byBlock.rows.map((row) => row.hold_id), [hold.hold_id]);
      for (const query of ['?user_id=x', '?block=b', '?after=%ff', '?after=garbage!']) {
        fails(await admin.get(`${event.adminPath}/holds${query}`), 400, 'invalid_request');
      }
      assert.deepEqual((await pages(admin, `${event.adminPath}/holds`, { user_id: uuid() })).rows, []);
    });

    it('checkouts are filtered by user, event and status, page by page', async () => {
      const own = await world.organization();
      const [event, other] = [await own.event({ layout: layoutOf(block('A', 1, [130])) }), await own.event()];
      const buyer = own.buyer();
      const paid = await buy(event, buyer, [event.seats[0]]);
      await event.hold(buyer, event.seats[1]);
      const pending = ok(await event.checkout(buyer), 201);
      await other.hold(buyer, other.seats[0]);
      const elsewhere = ok(await other.checkout(buyer), 201);
      const ids = async (query) => (await pages(own.admin, '/api/admin/checkouts', query)).rows.map((row) => row.checkout_id).sort();
      assert.deepEqual(await ids({}), [paid, pending, elsewhere].map((entry) => entry.checkout_id).sort());
      assert.deepEqual(await ids({ event_id: event.id }), [paid, pending].map((entry) => entry.checkout_id).sort());
      assert.deepEqual(await ids({ status: 'completed' }), [paid.checkout_id]);
      assert.deepEqual(await ids({ status: 'pending_payment', event_id: other.id }), [elsewhere.checkout_id]);
      assert.deepEqual(await ids({ user_id: buyer.user }), await ids({}));
      assert.deepEqual(await ids({ user_id: uuid() }), []);
      for (const query of ['?status=open', '?user_id=x', '?event_id=x']) fails(await own.admin.get(`/api/admin/checkouts${query}`), 400, 'invalid_request');
      for (let i = 2; i < 112; i++) {
        const caller = own.buyer();
        await event.hold(caller, event.seats[i]);
        ok(await event.checkout(caller), 201);
      }
      const { rows, count } = await pages(own.admin, '/api/admin/checkouts', { event_id: event.id });
      assert.equal(new Set(rows.map((row) => row.checkout_id)).size, 112);
      assert.equal(rows.length, 112);
      assert.ok(count > 1);
      hasKeys(rows[0], ['checkout_id', 'event_id', 'status', 'user_id', 'total_cents']);
    });
  });

  describe('release', { concurrency: 8 }, () => {
    const release = (body) => admin.post('/api/admin/seats/release', body);

    it('by hold ids, with what was skipped and why', async () => {
      const event = await organization.event();
      const buyer = organization.buyer();
      const holds = ok(await event.holdMany(buyer, event.seats.slice(0, 3)), 201).holds;
      const unknown = uuid();
      const data = ok(await release({ hold_ids: [holds[0].hold_id, holds[1].hold_id, unknown], notes: 'support call' }));
      hasKeys(data, ['status', 'reason', 'seats_released', 'hold_ids', 'skipped', 'message']);
      assert.equal(data.status, 'released');
      assert.equal(data.reason, 'admin_override');
      assert.equal(data.seats_released, 2);
      assert.deepEqual([...data.hold_ids].sort(), [holds[0].hold_id, holds[1].hold_id].sort());
      assert.deepEqual(data.skipped.map((entry) => entry.id), [unknown]);
      assert.ok(data.skipped[0].reason.length > 0);
      const again = ok(await release({ hold_ids: [holds[0].hold_id] }));
      assert.equal(again.seats_released, 0);
      assert.deepEqual(again.skipped.map((entry) => entry.id), [holds[0].hold_id]);
      assert.equal((await event.occupancy()).held, 1);
      const rows = await event.audit({ action: 'seat_released' });
      assert.equal(rows.length, 2);
      for (const row of rows) {
        assert.equal(row.reason, 'admin_override');
        assert.ok(JSON.stringify(row).includes(admin.user), 'it says which admin');
      }
    });

    it('by seat ids: held ones go, sold, blocked and free ones are skipped', async () => {
      const event = await organization.event();
      const hold = await event.hold(organization.buyer(), event.seats[0]);
      await buy(event, organization.buyer(), [event.seats[1]]);
      const data = ok(await release({ seat_ids: event.seats.slice(0, 3).map((seat) => seat.seat_id) }));
      assert.equal(data.seats_released, 1);
      assert.deepEqual(data.hold_ids, [hold.hold_id]);
      assert.deepEqual(data.skipped.map((entry) => entry.id).sort(), [event.seats[1].seat_id, event.seats[2].seat_id].sort());
      assert.deepEqual((await event.list()).slice(0, 3).map((seat) => seat.status), ['available', 'sold', 'available']);
    });

    it('by checkout', async () => {
      const event = await organization.event();
      const buyer = organization.buyer();
      ok(await event.holdMany(buyer, event.seats.slice(0, 2)), 201);
      const checkout = ok(await event.checkout(buyer), 201);
      await event.hold(buyer, event.seats[5]);
      const data = ok(await release({ checkout_id: checkout.checkout_id }));
      assert.equal(data.seats_released, 2);
      assert.equal(ok(await buyer.get(`/api/checkouts/${checkout.checkout_id}`)).status, 'cancelled');
      assert.equal((await event.occupancy()).held, 1);
      fails(await release({ checkout_id: uuid() }), 404, 'checkout_not_found');
    });

    it('by event, everything that is held, nothing that is sold', async () => {
      const event = await organization.event({ layout: layoutOf(block('A', 1, [100])) });
      for (let i = 0; i < 4; i++) ok(await event.holdMany(organization.buyer(), event.seats.slice(i * 20, i * 20 + 20)), 201);
      await buy(event, organization.buyer(), [event.seats[90], event.seats[91]]);
      const data = ok(await release({ event_id: event.id }));
      assert.equal(data.seats_released, 80);
      const occupancy = await event.occupancy();
      assert.deepEqual([occupancy.held, occupancy.sold], [0, 2]);
      fails(await release({ event_id: uuid() }), 404, 'event_not_found');
    });

    it('needs exactly one way to name them', async () => {
      for (const body of [{}, { hold_ids: [] }, { hold_ids: 'x' }, { hold_ids: ['x'] }, { seat_ids: [5] }, { checkout_id: 'x' }, { event_id: 5 },
        { hold_ids: [uuid()], seat_ids: [uuid()] }, { event_id: uuid(), checkout_id: uuid() }, { hold_ids: [uuid()], notes: 7 }, []]) {
        fails(await release(body), 400, 'invalid_request');
      }
    });
  });

  describe('audit', { concurrency: 8 }, () => {
    it('is newest first, page by page, and complete', async () => {
      const event = await organization.event({ layout: layoutOf(block('A', 1, [60])) });
      const buyer = organization.buyer();
      for (let i = 0; i < 2; i++) {
        const { holds } = ok(await event.holdMany(buyer, event.seats.slice(0, 50)), 201);
        ok(await admin.post('/api/admin/seats/release', { hold_ids: holds.map((hold) => hold.hold_id) }));
      }
      const rows = await event.audit({ action: 'seat_reserved' });
      assert.equal(rows.length, 100);
      const all = await event.audit();
      assert.ok(all.length >= 200);
      const times = all.map((row) => row.created_at);
      for (let i = 1; i < times.length; i++) assert.ok(times[i] <= times[i - 1], 'newest first');
      assert.equal(new Set(all.map((row) => row.id)).size, all.length, 'no row twice');
    });

    it('finds by entity, seat, event, user and action', async () => {
      const event = await organization.event();
      const [buyer, other] = [organization.buyer(), organization.buyer()];
      const hold = await event.hold(buyer, event.seats[0]);
      await event.hold(other, event.seats[1]);
      ok(await buyer.del(`/api/holds/${hold.hold_id}`));
      const find = async (query) => ok(await admin.get(`/api/admin/audit?${new URLSearchParams(query)}`));
      assert.deepEqual((await find({ entity_id: hold.hold_id })).map((row) => row.action), ['seat_released', 'seat_reserved']);
      assert.deepEqual((await find({ seat_id: hold.seat_id })).map((row) => row.action), ['seat_released', 'seat_reserved']);
      assert.deepEqual((await find({ user_id: other.user })).map((row) => row.action), ['seat_reserved']);
      assert.deepEqual((await find({ event_id: event.id, action: 'seat_released' })).map((row) => row.entity_id), [hold.hold_id]);
      assert.deepEqual(await find({ event_id: uuid() }), []);
      for (const query of ['entity_id=x', 'seat_id=5', 'event_id=', 'user_id=x', 'after=nonsense!']) {
        fails(await admin.get(`/api/admin/audit?${query}`), 400, 'invalid_request');
      }
    });

    it('a row says who, in which role, from where, on what, before and after', async () => {
      const event = await organization.event();
      const buyer = organization.buyer();
      const response = await event.reserve(buyer, event.seats[0], {}, { headers: { 'user-agent': 'test-agent/1.0', 'x-forwarded-for': '203.0.113.9' } });
      const hold = ok(response, 201);
      const [row] = ok(await admin.get(`/api/admin/audit?entity_id=${hold.hold_id}`));
      assert.equal(row.action, 'seat_reserved');
      assert.equal(row.entity_id, hold.hold_id);
      assert.equal(row.seat_id, hold.seat_id);
      assert.equal(row.event_id, event.id);
      const text = JSON.stringify(row);
      assert.ok(text.includes(buyer.user));
      assert.ok(text.includes('"buyer"'));
      assert.ok(text.includes('test-agent/1.0'));
      assert.ok(text.includes('127.0.0.1'));
      assert.ok(!text.includes('203.0.113.9'), 'a proxy\'s header counts only if the proxy is trusted');
      assert.ok(text.includes(response.headers['x-request-id']));
    });
  });

  describe('registry', { concurrency: 8 }, () => {
    it('counts per tier agree and say so', async () => {
      const event = await organization.event();
      ok(await event.holdMany(organization.buyer(), event.seats.slice(0, 3)), 201);
      const data = ok(await admin.get(`${event.adminPath}/registry`));
      hasKeys(data, ['consistent', 'status', 'message']);
      assert.equal(data.consistent, true);
      assert.equal(data.status, 'ok');
      assert.deepEqual([data.hot, data.store], [3, 3], JSON.stringify(data));
      assert.equal(data.warm, null, 'there is no warm tier');
    });

    it('reconcile changes nothing that is right', async () => {
      const event = await organization.event();
      ok(await event.holdMany(organization.buyer(), event.seats.slice(0, 3)), 201);
      const before1 = await event.list();
      ok(await admin.post(`${event.adminPath}/registry/reconcile`));
      assert.deepEqual(await event.list(), before1);
      assert.equal(ok(await admin.get(`${event.adminPath}/registry`)).consistent, true);
      fails(await organization.buyer().post(`${event.adminPath}/registry/reconcile`), 403, 'forbidden');
    });
  });

  it('occupancy history is a list of snapshots in time order', async () => {
    const event = await organization.event();
    const rows = ok(await admin.get(`${event.adminPath}/occupancy/history`));
    assert.ok(Array.isArray(rows));
    for (const row of rows) {
      hasKeys(row, ['snapshot_at', 'available', 'held', 'sold', 'blocked', 'total']);
      assert.equal(row.available + row.held + row.sold + row.blocked, row.total);
    }
  });

  it('analytics tell conversion and abandonment from what happened', async () => {
    const event = await organization.event({ layout: layoutOf(block('A', 1, [10]), block('B', 1, [10])) });
    await buy(event, organization.buyer(), [event.seats[0], event.seats[1], event.seats[2]]);
    const buyer = organization.buyer();
    const hold = await event.hold(buyer, event.seats[10]);
    ok(await buyer.del(`/api/holds/${hold.hold_id}`));
    const rows = ok(await admin.get(`${event.adminPath}/analytics`));
    const of = (name) => {
      const mine = rows.filter((row) => row.block === name);
      return ['holds', 'converted', 'cancelled', 'expired', 'active'].map((key) => mine.reduce((sum, row) => sum + row[key], 0));
    };
    assert.deepEqual(of('A-1'), [3, 3, 0, 0, 0]);
    assert.deepEqual(of('B-1'), [1, 0, 1, 0, 0]);
    for (const row of rows) {
      assert.match(row.hour, TIME);
      const ended = row.converted + row.cancelled + row.expired;
      const [conversion, abandonment] = row.block === 'A-1' ? [1, 0] : [0, 1];
      if (ended === row.holds) assert.deepEqual([row.conversion, row.abandonment].map((share) => (share > 1 ? share / 100 : share)), [conversion, abandonment]);
    }
  });
});
