// SPDX-License-Identifier: Apache-2.0
// GET /api/commands: what a call was answered, asked for later. Answers are kept by the hash of user, method, path and
// Idempotency-Key, so that it can be seen without a broker too: the id in the path only has to be one.

import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { after, before, describe, it } from 'node:test';

import { fails, ok } from '../lib/client.mjs';
import { start } from '../lib/server.mjs';
import { uuid } from '../lib/token.mjs';
import { World } from '../lib/world.mjs';

const hash = (caller, method, path, key) => createHash('sha256').update([caller.user, method, path, key].join('\n')).digest('hex');

describe('answers asked for later', { concurrency: 8 }, () => {
  let server;
  let world;
  let organization;

  before(async () => {
    server = await start();
    world = new World(server);
    organization = await world.organization();
  });
  after(() => server.stop());

  /** Makes the call with a key, and gives its answer and where it can be asked for. */
  const keyed = async (caller, method, path, body) => {
    const key = uuid();
    const answer = await caller.send(method, path, body, { key });
    return { answer, location: `/api/commands/${uuid()}.${hash(caller, method, path, key)}` };
  };
  const reserve = (caller, event, seat) => keyed(caller, 'POST', `${event.path}/seats/${seat.seat_id}/reserve`);

  const without = (body) => JSON.parse(JSON.stringify(body, (key, value) => (key === 'request_id' ? undefined : value)));
  const same = (again, answer) => {
    assert.equal(again.status, answer.status, again.text);
    assert.deepEqual(without(again.body), without(answer.body));
  };

  it('an id that nobody has is unknown, and the answer says what to do', async () => {
    const buyer = organization.buyer();
    for (const handle of [uuid(), `${uuid()}.${'0'.repeat(64)}`]) {
      const response = await buyer.get(`/api/commands/${handle}`);
      fails(response, 404, 'command_not_found');
      assert.match(response.body.error.message, /Idempotency-Key/);
    }
  });

  it('what no Location ever said is a bad request', async () => {
    const buyer = organization.buyer();
    const id = uuid();
    for (const handle of ['x', `${id}.`, `${id}.12`, `${id}.${'g'.repeat(64)}`, `${id}.${'0'.repeat(65)}`, `${id}.${'0'.repeat(64)}.x`,
      '00000000-0000-0000-0000-000000000000']) {
      const response = await buyer.get(`/api/commands/${handle}`);
      fails(response, 400, 'invalid_request');
    }
    fails(await world.anonymous().get(`/api/commands/${id}`), 401, 'unauthorized');
  });

  it('a reserve, its refusal, an extension and a release are told as they were', async () => {
    const event = await organization.event();
    const [buyer, rival] = [organization.buyer(), organization.buyer()];
    const made = await reserve(buyer, event, event.seats[0]);
    ok(made.answer, 201);
    same(await buyer.get(made.location), made.answer);

    const refused = await reserve(rival, event, event.seats[0]);
    fails(refused.answer, 409, 'seat_held_by_another_user');
    same(await rival.get(refused.location), refused.answer);

    const hold = made.answer.body.data.hold_id;
    const extended = await keyed(buyer, 'POST', `/api/holds/${hold}/extend`);
    ok(extended.answer);
    same(await buyer.get(extended.location), extended.answer);
    const released = await keyed(buyer, 'DELETE', `/api/holds/${hold}`);
    ok(released.answer);
    same(await buyer.get(released.location), released.answer);
    same(await buyer.get(made.location), made.answer);
  });

  it('several seats and the best: holds with their explanation, refusals seat by seat', async () => {
    const event = await organization.event();
    const [buyer, rival] = [organization.buyer(), organization.buyer()];
    const ids = event.seats.slice(0, 2).map((seat) => seat.seat_id);
    const several = await keyed(buyer, 'POST', `${event.path}/holds`, { seat_ids: ids });
    assert.equal(ok(several.answer, 201).holds.length, 2);
    same(await buyer.get(several.location), several.answer);

    const refused = await keyed(rival, 'POST', `${event.path}/holds`, { seat_ids: ids });
    fails(refused.answer, 409, 'seat_held_by_another_user');
    assert.equal(refused.answer.body.error.details.seats.length, 2);
    same(await rival.get(refused.location), refused.answer);

    const best = await keyed(rival, 'POST', `${event.path}/holds`, { quantity: 2 });
    assert.ok(ok(best.answer, 201).explanation);
    same(await rival.get(best.location), best.answer);
  });

  it('a checkout is shown as it is by now, a cancellation as it was', async () => {
    const event = await organization.event();
    const buyer = organization.buyer();
    await event.hold(buyer, event.seats[0]);
    const started = await keyed(buyer, 'POST', '/api/checkouts', { event_id: event.id });
    const id = ok(started.answer, 201).checkout_id;
    same(await buyer.get(started.location), started.answer);
    const paid = await keyed(buyer, 'POST', `/api/checkouts/${id}/complete`, { payment_token: 'tok_ok' });
    assert.equal(ok(paid.answer).tickets.length, 1);
    same(await buyer.get(paid.location), paid.answer);
    assert.equal(ok(await buyer.get(started.location), 201).status, 'completed');

    await event.hold(buyer, event.seats[1]);
    const second = ok(await event.checkout(buyer), 201);
    const cancelled = await keyed(buyer, 'POST', `/api/checkouts/${second.checkout_id}/cancel`, {});
    ok(cancelled.answer);
    same(await buyer.get(cancelled.location), cancelled.answer);
  });

  it('nobody else sees it: not another buyer, not another organization; agents of the same one do', async () => {
    const event = await organization.event();
    const buyer = organization.buyer();
    const made = await reserve(buyer, event, event.seats[0]);
    ok(made.answer, 201);
    const stranger = await world.organization();
    for (const other of [organization.buyer(), stranger.buyer(), stranger.admin, stranger.agent()]) {
      const response = await other.get(made.location);
      fails(response, 404, 'command_not_found');
    }
    for (const other of [organization.agent(), organization.admin]) {
      const seen = ok(await other.get(made.location), 201);
      assert.equal(seen.hold_id, made.answer.body.data.hold_id);
      assert.equal(seen.user_id, buyer.user, 'they see whose it is');
    }
  });

  it('an agent\'s command is the agent\'s and that of the buyer it was for', async () => {
    const event = await organization.event();
    const [agent, buyer] = [organization.agent(), organization.buyer()];
    ok(await buyer.get('/api/holds'));
    const made = await keyed(agent, 'POST', `${event.path}/seats/${event.seats[0].seat_id}/reserve`, { user_id: buyer.user });
    ok(made.answer, 201);
    assert.equal(ok(await agent.get(made.location), 201).hold_id, made.answer.body.data.hold_id);
    assert.equal(ok(await buyer.get(made.location), 201).hold_id, made.answer.body.data.hold_id);
    fails(await organization.buyer().get(made.location), 404, 'command_not_found');
  });

  it('the key of something that never travels is not to be found here', async () => {
    const admin = organization.admin;
    const made = await keyed(admin, 'POST', '/api/admin/events', { name: 'Not a command that travels' });
    ok(made.answer, 201);
    fails(await admin.get(made.location), 404, 'command_not_found');
  });
});
