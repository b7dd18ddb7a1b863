// SPDX-License-Identifier: Apache-2.0
// Organizations, events and people for tests, made through the public API. Every test makes its own event (and, where it
// counts, its own organization), so that the tests of a file share one server and still run side by side.

import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';

import { Caller, ok, send } from './client.mjs';
import { run, tempDir } from './server.mjs';
import { uuid } from './token.mjs';

/** No limits but those a test sets itself. */
export const OPEN_POLICY = { max_seats_per_user: 0, rate_limit_holds: 0 };

/** One block: `rows` is a list of row lengths, or of lists of labels. */
export function block(section, subsection, rows, { price = 1000, capacity, name } = {}) {
  return {
    section,
    subsection,
    name: name ?? `Section ${section} ${subsection}`,
    price_cents: price,
    ...(capacity === undefined ? {} : { capacity }),
    rows: rows.map((seats, index) => ({ label: String(index + 1), seats })),
  };
}

export const layoutOf = (...blocks) => ({ name: 'Test hall', blocks });

/** A server's people and places. */
export class World {
  constructor(server) {
    this.server = server;
  }

  caller(role, org, user = uuid()) {
    return new Caller(this.server, this.server.token({ org, user, role }), { org, user, role });
  }

  operator() {
    return new Caller(this.server, this.server.token({ user: uuid(), role: 'operator' }), { role: 'operator' });
  }

  anonymous() {
    return new Caller(this.server, undefined);
  }

  /** A new organization with its admin. */
  async organization(name = `Organization ${uuid().slice(0, 8)}`) {
    const data = ok(await this.operator().post('/api/admin/organizations', { name }), 201);
    const org = data.organization_id ?? data.id;
    return new Organization(this, org);
  }
}

export class Organization {
  constructor(world, id) {
    this.world = world;
    this.id = id;
    this.admin = world.caller('admin', id);
  }

  buyer(user) {
    return this.world.caller('buyer', this.id, user);
  }

  agent(user) {
    return this.world.caller('agent', this.id, user);
  }

  /** A published event on sale. `layout` defaults to one block A-1 with two rows of ten. */
  async event({ policy = {}, layout, status = 'published', ...fields } = {}) {
    const body = {
      name: `Event ${uuid().slice(0, 8)}`,
      sale_start: new Date(Date.now() - 3600_000).toISOString().replace(/\.\d+Z$/, 'Z'),
      sale_end: new Date(Date.now() + 86400_000).toISOString().replace(/\.\d+Z$/, 'Z'),
      currency: 'EUR',
      policy: { ...OPEN_POLICY, ...policy },
      ...fields,
    };
    const made = ok(await this.admin.post('/api/admin/events', body), 201);
    const event = new Event(this, made.event_id ?? made.id);
    ok(await this.admin.put(`/api/admin/events/${event.id}/layout`, layout ?? layoutOf(block('A', 1, [10, 10]))));
    const path = { draft: [], published: ['published'], live: ['published', 'live'] }[status];
    for (const step of path) ok(await this.admin.patch(`/api/admin/events/${event.id}`, { status: step }));
    if (status !== 'draft') await event.load();
    return event;
  }
}

export class Event {
  constructor(organization, id) {
    this.organization = organization;
    this.id = id;
    this.path = `/api/events/${id}`;
    this.adminPath = `/api/admin/events/${id}`;
  }

  /** Reads the seats in layout order. */
  async load() {
    this.seats = await this.list();
    return this;
  }

  async list(caller = this.organization.admin, query = '') {
    return ok(await caller.get(`${this.path}/seats${query}`));
  }

  async status(seatId) {
    const seat = (await this.list()).find((candidate) => candidate.seat_id === seatId);
    return seat?.status;
  }

  reserve(caller, seat, body = {}, options = undefined) {
    return caller.post(`${this.path}/seats/${seat.seat_id ?? seat}/reserve`, body, options);
  }

  /** Reserves and requires success; returns the hold. */
  async hold(caller, seat, body = {}) {
    return ok(await this.reserve(caller, seat, body), 201);
  }

  holdMany(caller, seats, body = {}, options = undefined) {
    return caller.post(`${this.path}/holds`, { seat_ids: seats.map((seat) => seat.seat_id ?? seat), ...body }, options);
  }

  best(caller, body) {
    return caller.post(`${this.path}/holds`, body);
  }

  checkout(caller, body = {}, options = undefined) {
    return caller.post('/api/checkouts', { event_id: this.id, ...body }, options);
  }

  async occupancy() {
    return ok(await this.organization.admin.get(`${this.path}/occupancy`));
  }

  patch(body, options = undefined) {
    return this.organization.admin.patch(this.adminPath, body, options);
  }

  /** Audit rows of this event, newest first, all pages. */
  async audit(query = {}) {
    const rows = [];
    let after;
    do {
      const search = new URLSearchParams({ event_id: this.id, ...query, ...(after ? { after } : {}) });
      const response = await this.organization.admin.get(`/api/admin/audit?${search}`);
      rows.push(...ok(response));
      after = response.body.next;
    } while (after);
    return rows;
  }
}

/** Pays for the caller's holds on the event; returns the completed checkout. */
export async function buy(event, caller, seats, token = 'tok_ok') {
  const holds = [];
  for (const seat of seats) holds.push(await event.hold(caller, seat));
  const started = ok(await event.checkout(caller, { hold_ids: holds.map((hold) => hold.hold_id) }), 201);
  return ok(await caller.post(`/api/checkouts/${started.checkout_id}/complete`, { payment_token: token }));
}

/** An import document with one event. */
export function importDocument({ organization = { name: 'Imported' }, event = {}, layout } = {}) {
  return {
    organization,
    event: { name: 'Imported event', status: 'published', currency: 'EUR', policy: { ...OPEN_POLICY }, ...event },
    layout: layout ?? layoutOf(block('A', 1, [10, 10])),
  };
}

/** Runs `holdfast import` on a store that no server has open; returns the ids it printed. */
export function importInto(database, document) {
  const file = join(tempDir(), 'import.json');
  writeFileSync(file, JSON.stringify(document));
  const result = run(['import', '--store', `sqlite:${database}`, file]);
  assert.equal(result.status, 0, `import failed: ${result.stderr}`);
  return JSON.parse(result.stdout);
}

/** The value of one metric; `labels` as they stand between the braces, or a part of them. */
export async function metric(server, name, labels = '') {
  const { status, text } = await send(`${server.url}/metrics`);
  assert.equal(status, 200);
  let sum = 0;
  let found = false;
  for (const line of text.split('\n')) {
    const match = /^([a-zA-Z0-9_:]+)(?:\{([^}]*)\})? (\S+)$/.exec(line);
    if (match && match[1] === name && (match[2] ?? '').includes(labels)) {
      sum += Number(match[3]);
      found = true;
    }
  }
  assert.ok(found, `no metric ${name}{${labels}}`);
  return sum;
}
