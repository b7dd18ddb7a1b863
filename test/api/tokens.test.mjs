// SPDX-License-Identifier: Apache-2.0
// Who may come in: every way a token can be wrong, the algorithm fixed by the key alone, and what each role may do.

import assert from 'node:assert/strict';
import { generateKeyPairSync } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';

import { fails, ok, send } from '../lib/client.mjs';
import { start, tempDir } from '../lib/server.mjs';
import { base64url, claimsFor, makeToken, now, signature, uuid } from '../lib/token.mjs';
import { waitUntilUnix } from '../lib/wait.mjs';
import { World, importDocument, importInto } from '../lib/world.mjs';

describe('tokens', { concurrency: 8 }, () => {
  let server;
  let world;
  let organization;

  before(async () => {
    server = await start();
    world = new World(server);
    organization = await world.organization();
  });
  after(() => server.stop());

  const refused = async (authorization) => {
    const headers = authorization === undefined ? {} : { authorization };
    const response = await send(`${server.url}/api/events`, { headers });
    fails(response, 401, 'unauthorized');
    return response;
  };
  const claims = (changes = {}) => claimsFor({ org: organization.id, user: uuid(), ...changes });

  it('a good token is let in, for every role', async () => {
    for (const role of ['buyer', 'agent', 'admin', 'operator']) {
      ok(await send(`${server.url}/api/events`, { token: makeToken(server.secret, claims({ role })) }));
    }
  });

  it('no token, an empty one and another scheme are refused', async () => {
    const response = await refused(undefined);
    assert.match(response.headers['www-authenticate'] ?? '', /^Bearer/i);
    await refused('');
    await refused('Bearer');
    await refused('Bearer ');
    await refused(`Basic ${Buffer.from('a:b').toString('base64')}`);
    await refused(`Token ${makeToken(server.secret, claims())}`);
    await refused(makeToken(server.secret, claims()));
  });

  it('alg none is refused however it is written', async () => {
    for (const alg of ['none', 'None', 'NONE', 'nOnE', '']) {
      const input = `${base64url(JSON.stringify({ alg, typ: 'JWT' }))}.${base64url(JSON.stringify(claims()))}`;
      await refused(`Bearer ${input}.`);
      await refused(`Bearer ${input}`);
      await refused(`Bearer ${input}.${signature('HS256', server.secret, input)}`);
    }
  });

  it('another algorithm than HS256 is refused, also when signed with the right secret', async () => {
    for (const alg of ['HS384', 'HS512']) await refused(`Bearer ${makeToken(server.secret, claims(), { alg })}`);
    for (const header of [{ alg: 'RS256' }, { alg: 'hs256' }, { typ: 'JWT' }, { alg: 5 }, { alg: null }, [], 'x', '{"alg":"HS256"']) {
      await refused(`Bearer ${makeToken(server.secret, claims(), { header })}`);
    }
    const { privateKey } = generateKeyPairSync('rsa', { modulusLength: 2048 });
    await refused(`Bearer ${makeToken(privateKey, claims(), { alg: 'RS256' })}`);
  });

  it('a wrong secret and a changed payload are refused', async () => {
    await refused(`Bearer ${makeToken('another secret', claims())}`);
    await refused(`Bearer ${makeToken('', claims())}`);
    const [head, , tail] = makeToken(server.secret, claims()).split('.');
    await refused(`Bearer ${head}.${base64url(JSON.stringify(claims({ role: 'operator' })))}.${tail}`);
    const good = makeToken(server.secret, claims());
    await refused(`Bearer ${good.slice(0, -4)}`);
    await refused(`Bearer ${good}.more`);
    await refused(`Bearer ${good}A`);
  });

  it('a token that worked is refused once a single character of its signature differs', async () => {
    const good = makeToken(server.secret, claims());
    ok(await send(`${server.url}/api/events`, { token: good }));
    const at = good.length - 20;
    const other = good[at] === 'A' ? 'B' : 'A';
    await refused(`Bearer ${good.slice(0, at)}${other}${good.slice(at + 1)}`);
  });

  it('exp is required, must be a number, and must lie ahead', async () => {
    await refused(`Bearer ${makeToken(server.secret, claims({ exp: undefined }))}`);
    for (const exp of [now() - 1, now() - 3600, 0, -1, null, true, [], {}, String(now() + 3600), '9999999999']) {
      await refused(`Bearer ${makeToken(server.secret, claims({ exp }))}`);
    }
  });

  it('a token stops working when it expires, also one that was seen before', async () => {
    const exp = now() + 2;
    const token = makeToken(server.secret, claims({ exp }));
    ok(await send(`${server.url}/api/events`, { token }));
    await waitUntilUnix(exp + 1);
    await refused(`Bearer ${token}`);
  });

  it('a token that is not valid yet is refused', async () => {
    await refused(`Bearer ${makeToken(server.secret, claims({ nbf: now() + 3600 }))}`);
  });

  it('sub, org and role must be what they are said to be', async () => {
    for (const sub of [undefined, null, 5, '', 'me', `${uuid()}0`, uuid().replaceAll('-', ''), {}]) {
      await refused(`Bearer ${makeToken(server.secret, claims({ sub }))}`);
    }
    for (const org of [undefined, null, 5, '', 'us', {}]) {
      await refused(`Bearer ${makeToken(server.secret, claims({ org }))}`);
    }
    for (const role of [undefined, null, 5, '', 'root', 'Admin', 'buyer ', ['admin']]) {
      await refused(`Bearer ${makeToken(server.secret, { ...claims(), role })}`);
    }
  });

  it('an unknown organization is refused', async () => {
    await refused(`Bearer ${makeToken(server.secret, claims({ org: uuid() }))}`);
  });

  it('an operator needs no organization', async () => {
    const token = makeToken(server.secret, claims({ org: undefined, role: 'operator' }));
    ok(await send(`${server.url}/api/admin/organizations`, { method: 'POST', token, body: { name: 'By operator' } }), 201);
  });

  it('garbage is refused', async () => {
    const good = makeToken(server.secret, claims());
    const [head, body, tail] = good.split('.');
    for (const token of ['x', '..', '...', `${head}..${tail}`, `.${body}.${tail}`, `${head}.${body}`, `${head}.!!!!.${tail}`,
      `${head}.${body}.%%%`, `${good} `.replace(' ', ' trailing'), 'a'.repeat(3000), 'é'.repeat(50), `${head}.${base64url('[]')}.${tail}`,
      `${head}.${base64url('"text"')}.${tail}`]) {
      await refused(`Bearer ${encodeURI(token)}`);
    }
    for (const raw of ['[]', 'null', '5', '"x"', '{', '{"sub":', '']) {
      await refused(`Bearer ${makeToken(server.secret, raw)}`);
    }
    await refused(`Bearer ${makeToken(server.secret, claims({ padding: 'x'.repeat(6000) }))}`);
  });

  it('a disabled user is refused at once and let in again when enabled', async () => {
    const buyer = organization.buyer();
    ok(await buyer.get('/api/events'));
    ok(await organization.admin.patch(`/api/admin/users/${buyer.user}`, { disabled: true }));
    fails(await buyer.get('/api/events'), 401, 'unauthorized');
    fails(await buyer.post('/api/checkouts', 'not even json'), 401, 'unauthorized');
    ok(await organization.admin.patch(`/api/admin/users/${buyer.user}`, { disabled: false }));
    ok(await buyer.get('/api/events'));
  });

  it('disabling a user of one organization leaves the same id in another alone', async () => {
    const elsewhere = await world.organization();
    const user = uuid();
    ok(await organization.buyer(user).get('/api/events'));
    ok(await elsewhere.buyer(user).get('/api/events'));
    ok(await organization.admin.patch(`/api/admin/users/${user}`, { disabled: true }));
    fails(await organization.buyer(user).get('/api/events'), 401, 'unauthorized');
    ok(await elsewhere.buyer(user).get('/api/events'));
  });

  it('an unknown user cannot be disabled', async () => {
    fails(await organization.admin.patch(`/api/admin/users/${uuid()}`, { disabled: true }), 404, 'not_found');
    const buyer = organization.buyer();
    ok(await buyer.get('/api/events'));
    for (const body of [{}, { disabled: 'yes' }, { disabled: 1 }, []]) {
      fails(await organization.admin.patch(`/api/admin/users/${buyer.user}`, body), 400, 'invalid_request');
    }
  });

  it('the token is looked at before role, shape and path ids', async () => {
    for (const [method, path] of [['POST', '/api/checkouts'], ['PATCH', '/api/admin/events/x'], ['GET', '/api/events/x'],
      ['PUT', `/api/admin/events/${uuid()}/layout`], ['DELETE', '/api/holds/x']]) {
      fails(await send(server.url + path, { method, token: 'bad', body: method === 'GET' ? undefined : '{' }), 401, 'unauthorized');
    }
  });

  it('the role is looked at before the shape', async () => {
    for (const caller of [organization.buyer(), organization.agent()]) {
      fails(await caller.post('/api/admin/events', '{'), 403, 'forbidden');
      fails(await caller.patch('/api/admin/events/x', '{'), 403, 'forbidden');
      fails(await caller.post('/api/admin/seats/release', '[]'), 403, 'forbidden');
      fails(await caller.get('/api/admin/audit?after=%00'), 403, 'forbidden');
    }
    fails(await organization.admin.post('/api/admin/organizations', '{'), 403, 'forbidden');
  });

  it('metrics are open from loopback and take an operator', async () => {
    assert.equal((await send(`${server.url}/metrics`)).status, 200);
    assert.equal((await send(`${server.url}/metrics`, { token: world.operator().bearer })).status, 200);
  });
});

describe('tokens signed with a key pair', { concurrency: 2 }, () => {
  const kinds = {
    RS256: () => generateKeyPairSync('rsa', { modulusLength: 2048 }),
    ES256: () => generateKeyPairSync('ec', { namedCurve: 'P-256' }),
  };
  for (const [alg, generate] of Object.entries(kinds)) {
    it(`a public key of the ${alg} kind means ${alg} and nothing else`, async () => {
      const { publicKey, privateKey } = generate();
      const pem = publicKey.export({ type: 'spki', format: 'pem' });
      const dir = tempDir();
      const file = join(dir, 'key.pem');
      writeFileSync(file, pem);
      const database = join(dir, 'holdfast.db');
      const organization = uuid();
      importInto(database, importDocument({ organization: { id: organization, name: 'Keys' } }));
      const server = await start({ dir, database, keyArgs: ['--jwt-public-key', file] });
      const ask = (token) => send(`${server.url}/api/events`, { token });
      const claims = (changes) => claimsFor({ org: organization, user: uuid(), ...changes });

      ok(await ask(makeToken(privateKey, claims(), { alg })));
      fails(await ask(makeToken(privateKey, claims({ exp: now() - 1 }), { alg })), 401, 'unauthorized');
      fails(await ask(makeToken(privateKey, claims({ exp: undefined }), { alg })), 401, 'unauthorized');
      // The classic confusion: the public key, which anybody may know, used as an HMAC secret.
      for (const secret of [pem, pem.trim(), publicKey.export({ type: 'spki', format: 'der' })]) {
        fails(await ask(makeToken(secret, claims())), 401, 'unauthorized');
        fails(await ask(makeToken(secret, claims(), { alg: 'HS256', header: { alg, typ: 'JWT' } })), 401, 'unauthorized');
      }
      fails(await ask(makeToken('', claims(), { alg: 'none' })), 401, 'unauthorized');
      fails(await ask(makeToken(privateKey, claims(), { alg, header: { alg: 'HS256' } })), 401, 'unauthorized');
      const stranger = generate();
      fails(await ask(makeToken(stranger.privateKey, claims(), { alg })), 401, 'unauthorized');
      if (alg === 'RS256') fails(await ask(makeToken(privateKey, claims(), { alg: 'RS512' })), 401, 'unauthorized');
      const good = makeToken(privateKey, claims(), { alg });
      fails(await ask(`${good.slice(0, good.lastIndexOf('.') + 1)}${base64url('short')}`), 401, 'unauthorized');
      fails(await ask(good.slice(0, good.lastIndexOf('.') + 1)), 401, 'unauthorized');
      const [head, body] = good.split('.');
      fails(await ask(`${head}.${body}.${base64url(Buffer.alloc(alg === 'ES256' ? 64 : 256))}`), 401, 'unauthorized');
      await server.stop();
    });
  }
});
