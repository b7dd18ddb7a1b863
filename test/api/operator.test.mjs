// SPDX-License-Identifier: Apache-2.0
// Those who run it: operators act in any event's organization, streams end with their token, requests can be found in the
// log, the registry's answers agree, and what is misspelt is not silently ignored.

import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';

import { Caller, fails, ok } from '../lib/client.mjs';
import { start } from '../lib/server.mjs';
import { openEventStream } from '../lib/sse.mjs';
import { uuid } from '../lib/token.mjs';
import { waitFor } from '../lib/wait.mjs';
import { World } from '../lib/world.mjs';

describe('operator', { concurrency: 8 }, () => {
  let server;
  let world;
  let organization;

  before(async () => {
    server = await start({ args: ['--log-level', 'debug'] });
    world = new World(server);
    organization = await world.organization();
  });
  after(async () => {
    await server.stop();
  });

  it('acts in the organization of the event, with a token of no organization or of another', async () => {
    const event = await organization.event();
    const elsewhere = await world.organization();
    for (const operator of [world.operator(), world.caller('operator', elsewhere.id)]) {
      assert.equal(ok(await operator.get(event.path)).event_id, event.id);
      ok(await operator.get(`${event.path}/occupancy`));
      ok(await operator.get(`${event.adminPath}/holds`));
    }
  });

  it('without an organization sees the events of all of them, and whose they are', async () => {
    const event = await organization.event({ status: 'draft' });
    const elsewhere = await world.organization();
    const theirs = await elsewhere.event();
    const all = ok(await world.operator().get('/api/admin/events'));
    const orgOf = (id) => all.find((one) => one.event_id === id)?.organization_id;
    assert.equal(orgOf(event.id), organization.id);
    assert.equal(orgOf(theirs.id), elsewhere.id);
    const own = ok(await world.caller('operator', elsewhere.id).get('/api/admin/events'));
    assert.deepEqual(own.map((one) => one.event_id), [theirs.id], 'one with an organization sees that one');
    const admins = ok(await organization.admin.get('/api/admin/events'));
    assert.ok(admins.every((one) => one.organization_id === organization.id));
    assert.equal(ok(await elsewhere.buyer().get(theirs.path)).organization_id, undefined);
  });

  it('without an organization releases seats of the event it names, and no others', async () => {
    const event = await organization.event();
    const operator = world.operator();
    await event.hold(organization.buyer(), event.seats[0]);
    const body = { seat_ids: [event.seats[0].seat_id], notes: 'operator' };
    fails(await operator.post('/api/admin/seats/release', body), 403, 'forbidden');
    const elsewhere = await (await world.organization()).event();
    const missed = ok(await operator.post(`/api/admin/seats/release?event_id=${elsewhere.id}`, body));
    assert.equal(missed.seats_released, 0);
    assert.equal(await event.status(event.seats[0].seat_id), 'held');
    assert.equal(ok(await operator.post(`/api/admin/seats/release?event_id=${event.id}`, body)).seats_released, 1);
    const stranger = (await world.organization()).admin;
    await event.hold(organization.buyer(), event.seats[1]);
    const theft = ok(await stranger.post(`/api/admin/seats/release?event_id=${event.id}`, { seat_ids: [event.seats[1].seat_id] }));
    assert.equal(theft.seats_released, 0, 'an admin stays in their own organization whatever they name');
  });

  it('without an organization may not name one any other way', async () => {
    fails(await world.operator().post('/api/admin/events', { name: 'x', organization_id: organization.id }), 403, 'forbidden');
  });

  it('finds the registry consistent after reconciling, with seats held', async () => {
    const event = await organization.event();
    const buyer = organization.buyer();
    for (const seat of event.seats.slice(0, 5)) await event.hold(buyer, seat);
    for (const response of [
      await organization.admin.get(`${event.adminPath}/registry`),
      await organization.admin.post(`${event.adminPath}/registry/reconcile`, {}),
    ]) {
      const { hot, store, consistent, status } = ok(response);
      assert.deepEqual({ hot, store, consistent, status }, { hot: 5, store: 5, consistent: true, status: 'ok' });
    }
  });

  it('finds every request in the log by its id', async () => {
    const event = await organization.event();
    const id = `find-me-${uuid().slice(0, 8)}`;
    const buyer = organization.buyer();
    const response = await buyer.get(event.path, { headers: { 'X-Request-Id': id } });
    assert.equal(response.headers['x-request-id'], id);
    await waitFor('the log line', () => server.output().includes(id));
    const line = server
      .output()
      .split('\n')
      .find((candidate) => candidate.includes(id));
    const entry = JSON.parse(line);
    assert.equal(entry.request_id, id);
    assert.equal(entry.path, event.path);
    assert.equal(entry.status, 200);
    assert.equal(entry.method, 'GET');
  });

  it('can disable a user whose first token was seen a moment ago', async () => {
    for (let i = 0; i < 20; i++) {
      const buyer = organization.buyer();
      ok(await buyer.get('/api/events'));
      ok(await organization.admin.patch(`/api/admin/users/${buyer.user}`, { disabled: true }));
      fails(await buyer.get('/api/events'), 401, 'unauthorized');
    }
  });

  it('sees a misspelt policy field refused by its name', async () => {
    const response = await organization.admin.post('/api/admin/events', { name: 'x', policy: { hold_ttl_second: 60 } });
    const error = fails(response, 400, 'invalid_request');
    assert.match(JSON.stringify(error), /hold_ttl_second/);
  });
});

describe('a stream', { concurrency: 4 }, () => {
  let server;
  let world;
  let organization;

  before(async () => {
    server = await start();
    world = new World(server);
    organization = await world.organization();
  });
  after(async () => {
    await server.stop();
  });

  it('ends with the token that opened it', async () => {
    const event = await organization.event();
    const user = uuid();
    const token = server.token({ org: organization.id, user, role: 'buyer', ttl: 2 });
    const stream = await openEventStream(event, new Caller(server, token, { org: organization.id, user, role: 'buyer' }));
    await waitFor('the end of the stream', () => stream.closed);
    stream.close();
  });

  it('ends when its user is disabled, and only that one', async () => {
    const event = await organization.event();
    const [gone, stays] = [organization.buyer(), organization.buyer()];
    const streams = [await openEventStream(event, gone), await openEventStream(event, stays)];
    ok(await organization.admin.patch(`/api/admin/users/${gone.user}`, { disabled: true }));
    await waitFor('the end of the stream', () => streams[0].closed);
    assert.equal(streams[1].closed, false);
    for (const stream of streams) stream.close();
  });
});
