// SPDX-License-Identifier: Apache-2.0
// The description of the API against the API: every documented operation exists, nothing else does, every role is
// enforced, and no operation says anything about another organization. The cases are made from /openapi.json, so that a
// new endpoint is covered the day it is described.

import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { after, before, describe, it } from 'node:test';

import { fails, ok, send } from '../lib/client.mjs';
import { exchange, oneAnswer, rawRequest } from '../lib/raw.mjs';
import { start } from '../lib/server.mjs';
import { saysNothingOf } from '../lib/shape.mjs';
import { openStream } from '../lib/sse.mjs';
import { uuid } from '../lib/token.mjs';
import { block, buy, layoutOf, World } from '../lib/world.mjs';

const sha256 = (text) => createHash('sha256').update(text).digest('hex');
const METHODS = ['get', 'put', 'post', 'delete', 'patch', 'head', 'options'];
const ROLES = ['buyer', 'agent', 'admin', 'operator'];

/** What the contract lists: method, path with its parameters blanked out. */
const PROMISED = `
GET /api/events
GET /api/events/{}
GET /api/events/{}/layout
GET /api/events/{}/seats
GET /api/events/{}/availability
GET /api/events/{}/occupancy
POST /api/events/{}/seats/{}/reserve
POST /api/events/{}/holds
GET /api/holds
GET /api/holds/{}
POST /api/holds/{}/extend
DELETE /api/holds/{}
GET /api/checkouts
POST /api/checkouts
GET /api/checkouts/{}
POST /api/checkouts/{}/complete
POST /api/checkouts/{}/cancel
GET /api/commands/{}
GET /api/events/{}/stream
GET /api/stream
POST /api/admin/organizations
PATCH /api/admin/users/{}
GET /api/admin/events
POST /api/admin/events
PATCH /api/admin/events/{}
PUT /api/admin/events/{}/layout
PATCH /api/admin/events/{}/blocks/{}
POST /api/admin/events/{}/seats/block
POST /api/admin/events/{}/seats/unblock
GET /api/admin/events/{}/holds
GET /api/admin/checkouts
POST /api/admin/seats/release
GET /api/admin/events/{}/registry
POST /api/admin/events/{}/registry/reconcile
GET /api/admin/events/{}/occupancy/history
GET /api/admin/events/{}/analytics
GET /api/admin/audit
GET /api/admin/figures
GET /api/admin/dead-letters
GET /healthz
GET /readyz
GET /metrics
GET /openapi.json
GET /
`.trim().split('\n');

/** A body of the right shape for an operation, with the ids of `world` in it. */
function bodyFor(name, ids) {
  switch (name) {
    case 'POST /api/events/{}/holds':
      return { seat_ids: [ids.seat, ids.seat2] };
    case 'POST /api/checkouts':
      return { event_id: ids.event, hold_ids: [ids.hold] };
    case 'POST /api/checkouts/{}/complete':
      return { payment_token: 'tok_ok' };
    case 'POST /api/admin/organizations':
      return { name: 'Made by the contract test' };
    case 'PATCH /api/admin/users/{}':
      return { disabled: true };
    case 'POST /api/admin/events':
      return { name: 'Made by the contract test' };
    case 'PATCH /api/admin/events/{}':
      return { name: 'Changed by a stranger' };
    case 'PUT /api/admin/events/{}/layout':
      return layoutOf(block('Q', 1, [1]));
    case 'PATCH /api/admin/events/{}/blocks/{}':
      return { name: 'Changed by a stranger' };
    case 'POST /api/admin/events/{}/seats/block':
    case 'POST /api/admin/events/{}/seats/unblock':
      return { seat_ids: [ids.seat] };
    case 'POST /api/admin/seats/release':
      return { hold_ids: [ids.hold] };
    default:
      return {};
  }
}

/** Fills path parameters by what their names and places say. */
function fill(path, ids) {
  return path.replace(/\{([^}]+)\}/g, (_, parameter, at) => {
    const before1 = path.slice(0, at).split('/').filter(Boolean).pop();
    if (/provider/.test(parameter)) return 'simulated';
    return { events: ids.event, seats: ids.seat, holds: ids.hold, checkouts: ids.checkout, commands: ids.command, users: ids.user, blocks: ids.block }[before1] ?? ids.event;
  });
}

const isStream = (path) => path.endsWith('/stream');

describe('contract', { concurrency: 4 }, () => {
  let server;
  let world;
  let document;
  let operations;

  before(async () => {
    server = await start();
    world = new World(server);
    const response = await send(`${server.url}/openapi.json`);
    assert.equal(response.status, 200);
    document = response.body;
    operations = Object.entries(document.paths).flatMap(([path, item]) =>
      METHODS.filter((method) => item[method]).map((method) => ({
        method: method.toUpperCase(),
        path,
        name: `${method.toUpperCase()} ${path.replace(/\{[^}]*\}/g, '{}')}`,
        role: item[method]['x-holdfast-role'],
        operation: item[method],
        shared: item.parameters ?? [],
      })));
  });
  after(() => server.stop());

  /** An organization with one of everything, and the ids of it. */
  const populated = async () => {
    const organization = await world.organization();
    const event = await organization.event();
    const buyer = organization.buyer();
    const hold = await event.hold(buyer, event.seats[0], { cart_token: `cart-${uuid()}` });
    const key = uuid();
    const second = ok(await event.reserve(buyer, event.seats[1], {}, { key }), 201);
    const checkout = ok(await event.checkout(buyer, { hold_ids: [second.hold_id] }), 201);
    const paid = await buy(event, organization.buyer(), [event.seats[2]]);
    const { blocks } = ok(await organization.admin.get(event.path));
    const ids = {
      organization: organization.id,
      event: event.id,
      seat: event.seats[0].seat_id,
      seat2: event.seats[5].seat_id,
      hold: hold.hold_id,
      checkout: checkout.checkout_id,
      // As the Location of a 202 would name it: an id, and the hash that the answer is kept by.
      command: `${uuid()}.${sha256(`${buyer.user}\nPOST\n${event.path}/seats/${event.seats[1].seat_id}/reserve\n${key}`)}`,
      user: buyer.user,
      block: blocks[0].block_id ?? blocks[0].id,
    };
    return { organization, event, buyer, ids, checkout, paid };
  };
  const randomIds = () => ({ ...Object.fromEntries(['organization', 'event', 'seat', 'seat2', 'hold', 'checkout', 'user', 'block'].map((key) => [key, uuid()])),
    command: `${uuid()}.${sha256(uuid())}` });

  const call = async ({ method, path, name }, caller, ids) => {
    const url = fill(path, ids);
    const body = ['GET', 'DELETE', 'HEAD'].includes(method) ? undefined : bodyFor(name, ids);
    if (!isStream(path)) return caller.send(method, url, body);
    const stream = await openStream(server, url, { token: caller.bearer });
    if (stream.status === 200) {
      stream.close();
      return { status: 200, headers: stream.headers, text: '', body: undefined };
    }
    stream.close();
    return caller.send(method, url, body);
  };

  it('is OpenAPI 3.1 with a title, a version and resolvable references', () => {
    assert.match(document.openapi, /^3\.1\./);
    assert.ok(document.info.title && document.info.version);
    const check = (value, where) => {
      if (value === null || typeof value !== 'object') return;
      if (typeof value.$ref === 'string') {
        assert.match(value.$ref, /^#\//);
        const target = value.$ref.slice(2).split('/').reduce((at, key) => at?.[key.replace(/~1/g, '/').replace(/~0/g, '~')], document);
        assert.ok(target !== undefined, `${value.$ref} in ${where} leads nowhere`);
      }
      for (const [key, child] of Object.entries(value)) check(child, `${where}/${key}`);
    };
    check(document, '#');
  });

  it('every operation has responses with descriptions, a unique id, and its path parameters', () => {
    const seen = new Set();
    for (const { path, name, operation, shared } of operations) {
      assert.ok(Object.keys(operation.responses ?? {}).length > 0, `${name} has responses`);
      for (const [status, response] of Object.entries(operation.responses)) {
        assert.match(status, /^([1-5]\d\d|[1-5]XX|default)$/);
        assert.ok(response.description || response.$ref, `${name} ${status} has a description`);
      }
      assert.ok(operation.operationId && !seen.has(operation.operationId), `${name} has an operationId of its own`);
      seen.add(operation.operationId);
      const named = [...shared, ...(operation.parameters ?? [])]
        .map((parameter) => (parameter.$ref ? parameter.$ref.slice(2).split('/').reduce((at, key) => at[key], document) : parameter))
        .filter((parameter) => parameter.in === 'path').map((parameter) => parameter.name);
      for (const [, parameter] of path.matchAll(/\{([^}]+)\}/g)) assert.ok(named.includes(parameter), `${name} describes {${parameter}}`);
    }
  });

  it('describes exactly what the contract promises', () => {
    const described = new Set(operations.map((operation) => operation.name));
    const missing = PROMISED.filter((name) => !described.has(name));
    assert.deepEqual(missing, [], 'promised but not described');
    const extra = [...described].filter((name) => !PROMISED.includes(name) && !name.includes('/webhooks/') && !/^GET \/([a-z0-9-]+\.(js|css|svg|png|webmanifest)|assets\/{})$/.test(name) && !name.startsWith('HEAD') && !name.startsWith('OPTIONS'));
    assert.deepEqual(extra, [], 'described but not promised');
  });

  it('every described operation answers, with a status it describes', async () => {
    const { organization, ids } = await populated();
    // A server that was built without the web app describes its files all the same, and answers 404 for them.
    const page = await world.anonymous().get('/');
    const web = page.text.includes('/assets/') ? /assets/ : /assets|icon|manifest|sw\.js/;
    for (const entry of operations) {
      const caller = entry.role === 'operator' ? world.operator() : ROLES.includes(entry.role) ? world.caller(entry.role, organization.id) : world.anonymous();
      const response = await call(entry, caller, { ...randomIds(), event: ids.event });
      const code = response.body?.error?.code;
      assert.ok(!(response.status === 404 && code === 'not_found' && !/users|blocks/.test(entry.path) && !web.test(entry.path)), `${entry.name} is not there: ${response.text}`);
      assert.notEqual(response.status, 405, `${entry.name} is refused as a method`);
      assert.ok(response.status < 500, `${entry.name}: ${response.status} ${response.text}`);
      const described = Object.keys(entry.operation.responses);
      assert.ok(described.includes(String(response.status)) || described.includes('default') || described.includes(`${String(response.status)[0]}XX`),
        `${entry.name} answered ${response.status}, which is not described (${described})`);
    }
  });

  it('a path that is described refuses the methods that are not, with Allow', async () => {
    const admin = (await world.organization()).admin;
    for (const path of Object.keys(document.paths)) {
      const allowed = METHODS.filter((method) => document.paths[path][method]).map((method) => method.toUpperCase());
      for (const method of ['GET', 'PUT', 'POST', 'DELETE', 'PATCH'].filter((candidate) => !allowed.includes(candidate))) {
        if (isStream(path) && method === 'GET') continue;
        const response = await admin.send(method, fill(path, randomIds()), method === 'GET' || method === 'DELETE' ? undefined : {});
        fails(response, 405, 'method_not_allowed');
        const allow = (response.headers.allow ?? '').split(/, */);
        for (const one of allowed) assert.ok(allow.includes(one), `${method} ${path}: Allow ${allow} names ${one}`);
        assert.ok(!allow.includes(method));
      }
    }
  });

  it('nothing answers where nothing is described', async () => {
    const { organization, ids } = await populated();
    const admin = organization.admin;
    const probes = ['/api', '/api/', '/api/event', '/api/events/', `/api/events/${ids.event}/`, `/api/events/${ids.event}/holds/`, `/api/events/${ids.event}/seat`,
      `/api/events/${ids.event}/seats/${ids.seat}`, `/api/events/${ids.event}/seats/${ids.seat}/reserve/x`, '/api/holds/', '/api/checkouts/', '/api/users',
      '/api/admin', '/api/admin/', '/api/admin/users', '/api/admin/holds', `/api/admin/events/${ids.event}/seats`, '/api/admin/organization', '/api/demo',
      '/api/demo/token', '/admin', '/debug', '/metrics/', '/healthz/x', '/.env', '/.git/config', '/index.php', '/api/events/../admin/events', '/%2e%2e/etc/passwd',
      '/../../etc/passwd', '/..%2f..%2fetc/passwd', '//api/events', '/API/EVENTS', '/api//events', '/openapi.yaml', '/holdfast.db', '/secret'];
    for (const path of probes) {
      const response = await exchange(server, rawRequest('GET', path, { authorization: `Bearer ${admin.bearer}` }), { until: oneAnswer });
      assert.equal(response.status, 404, `${path}: ${response.status} ${response.text.slice(0, 400)}`);
      saysNothingOf(response.text, 'root:', 'SQLite format');
    }
  });

  it('every operation with a role refuses no token and every lesser role', async () => {
    const { organization, ids } = await populated();
    const described = operations.filter((entry) => entry.path.startsWith('/api/') && ROLES.includes(entry.role));
    assert.ok(described.length >= 30, `${described.length} operations name a role`);
    for (const entry of described) {
      fails(await call(entry, world.anonymous(), ids), 401, 'unauthorized');
      for (const lesser of ROLES.slice(0, ROLES.indexOf(entry.role))) {
        fails(await call(entry, world.caller(lesser, organization.id), ids), 403, 'forbidden');
      }
    }
    for (const entry of operations) {
      if (entry.path.startsWith('/api/admin/')) assert.ok(['admin', 'operator'].includes(entry.role), `${entry.name} is for admins`);
      else if (entry.path.startsWith('/api/')) assert.ok(ROLES.includes(entry.role), `${entry.name} names its role`);
    }
  });

  it('another organization\'s ids answer as ids that do not exist, for every operation, and change nothing', async () => {
    const victim = await populated();
    const stranger = await world.organization();
    await stranger.event();
    const { ids } = victim;
    const picture = async () => JSON.stringify([
      await victim.event.list(),
      ok(await victim.buyer.get('/api/holds')).map((hold) => [hold.hold_id, hold.held_until]),
      ok(await victim.buyer.get(`/api/checkouts/${ids.checkout}`)),
      ok(await victim.organization.admin.get('/api/admin/events')),
    ], (key, value) => (key === 'expires_in_seconds' ? undefined : value));
    const before1 = await picture();
    const own = new Set(['request_id']);
    const shape = (response) => JSON.stringify(response.body ?? null, (key, value) => (own.has(key) ? undefined : value));
    assert.equal(ok(await victim.buyer.get(`/api/commands/${ids.command}`), 201).checkout_id, null, 'the victim has one of everything');
    let tried = 0;
    for (const entry of operations) {
      if (!entry.path.startsWith('/api/') || entry.role === 'operator') continue;
      const needsIds = entry.path.includes('{') || ['POST /api/checkouts', 'POST /api/admin/seats/release'].includes(entry.name);
      if (!needsIds) continue;
      for (const role of ROLES.slice(ROLES.indexOf(entry.role), 3)) {
        const unknown = randomIds();
        const caller = world.caller(role, stranger.id);
        const foreign = await call(entry, caller, ids);
        const random = await call(entry, caller, unknown);
        let expected = shape(random);
        for (const key of Object.keys(unknown)) expected = expected.replaceAll(unknown[key], ids[key]);
        assert.equal(foreign.status, random.status, `${entry.name} as ${role}: ${foreign.text}`);
        assert.equal(shape(foreign), expected, `${entry.name} as ${role} answers the same as for an unknown id`);
        if (entry.name !== 'POST /api/admin/seats/release') assert.equal(foreign.status, 404, `${entry.name}: ${foreign.text}`);
        saysNothingOf(foreign.text, victim.organization.id, 'Test hall', 'Section A');
        tried++;
      }
    }
    assert.ok(tried >= 30, `${tried} cases`);
    assert.equal(await picture(), before1, 'nothing of the victim changed');
    ok(await victim.buyer.get('/api/events'));
  });

  it('another organization\'s ids in bodies and filters find nothing', async () => {
    const victim = await populated();
    const stranger = await world.organization();
    const event = await stranger.event();
    const { ids } = victim;
    const [buyer, admin, agent] = [stranger.buyer(), stranger.admin, stranger.agent()];
    fails(await event.holdMany(buyer, [event.seats[0].seat_id, ids.seat2]), 404, 'seat_not_found');
    fails(await event.reserve(buyer, ids.seat2), 404, 'seat_not_found');
    fails(await event.checkout(buyer, { hold_ids: [ids.hold] }), 404, 'hold_not_found');
    fails(await buyer.post('/api/checkouts', { event_id: ids.event }), 404, 'event_not_found');
    const released = ok(await admin.post('/api/admin/seats/release', { hold_ids: [ids.hold] }));
    assert.equal(released.seats_released, 0);
    const bySeat = ok(await admin.post('/api/admin/seats/release', { seat_ids: [ids.seat] }));
    assert.equal(bySeat.seats_released, 0);
    fails(await admin.post('/api/admin/seats/release', { checkout_id: ids.checkout }), 404, 'checkout_not_found');
    fails(await admin.post('/api/admin/seats/release', { event_id: ids.event }), 404, 'event_not_found');
    for (const query of [`event_id=${ids.event}`, `seat_id=${ids.seat}`, `entity_id=${ids.hold}`, `user_id=${ids.user}`]) {
      assert.deepEqual(ok(await admin.get(`/api/admin/audit?${query}`)), [], query);
    }
    for (const query of [`event_id=${ids.event}`, `user_id=${ids.user}`]) assert.deepEqual(ok(await admin.get(`/api/admin/checkouts?${query}`)), [], query);
    assert.deepEqual(ok(await admin.get(`${event.adminPath}/holds?user_id=${ids.user}`)), []);
    fails(await admin.post(`${event.adminPath}/seats/block`, { seat_ids: [ids.seat2] }), 404, 'seat_not_found');
    // An agent may act only for users of their own organization: the same id there is another person.
    const own = await event.reserve(agent, event.seats[3], { user_id: ids.user });
    assert.ok([201, 400, 404].includes(own.status), own.text);
    assert.deepEqual(ok(await victim.buyer.get('/api/holds')).map((hold) => hold.event_id).filter((id) => id !== ids.event), []);
    assert.equal((await victim.event.occupancy()).held, 2);
    assert.equal((await victim.event.occupancy()).blocked, 0);
  });

  it('the organization is never taken from a parameter', async () => {
    const [victim, stranger] = [await populated(), await world.organization()];
    const { ids } = victim;
    const caller = stranger.admin;
    for (const query of [`?organization_id=${ids.organization}`, `?org=${ids.organization}`]) {
      fails(await caller.get(`/api/events/${ids.event}${query}`), 404, 'event_not_found');
      assert.deepEqual(ok(await caller.get(`/api/admin/events${query}`)), []);
    }
    const headers = { 'x-organization-id': ids.organization, 'x-org': ids.organization };
    assert.deepEqual(ok(await caller.get('/api/events', { headers })), []);
    const made = await caller.post('/api/admin/events', { name: 'Where?', organization_id: ids.organization });
    if (made.status === 201) assert.ok(ok(await caller.get('/api/admin/events')).some((event) => event.event_id === made.body.data.event_id));
    else fails(made, 400, 'invalid_request');
    assert.equal(ok(await victim.organization.admin.get('/api/admin/events')).length, 1);
  });

  it('lists never show another organization\'s rows', async () => {
    const [first, second] = [await populated(), await populated()];
    for (const [mine, theirs] of [[first, second], [second, first]]) {
      const admin = mine.organization.admin;
      for (const path of ['/api/events', '/api/admin/events', '/api/admin/checkouts', '/api/admin/audit', `/api/admin/events/${mine.ids.event}/holds`]) {
        const response = await admin.get(path);
        assert.ok(ok(response).length > 0, path);
        saysNothingOf(response.text, Object.values(theirs.ids));
      }
    }
  });
});
