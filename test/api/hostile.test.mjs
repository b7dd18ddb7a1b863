// SPDX-License-Identifier: Apache-2.0
// Bad input of every kind, on a server that is serving others at the same time: the clear error, no crash, no change, no
// effect on anybody else.

import assert from 'node:assert/strict';
import { connect } from 'node:net';
import { after, before, describe, it } from 'node:test';

import { fails, ok, send } from '../lib/client.mjs';
import { exchange, oneAnswer, rawRequest } from '../lib/raw.mjs';
import { start } from '../lib/server.mjs';
import { uuid } from '../lib/token.mjs';
import { block, layoutOf, World } from '../lib/world.mjs';

describe('hostile input', { concurrency: 6 }, () => {
  let server;
  let organization;
  let event;
  let buyer;
  let busy;
  let finished = false;

  before(async () => {
    server = await start();
    organization = await new World(server).organization();
    event = await organization.event({ layout: layoutOf(block('A', 1, [50])) });
    buyer = organization.buyer();
    // Somebody else's ordinary day, all the while: every one of these must succeed.
    const other = await organization.event({ layout: layoutOf(block('A', 1, [20])) });
    busy = (async () => {
      const caller = organization.buyer();
      let rounds = 0;
      while (!finished) {
        const hold = await other.hold(caller, other.seats[rounds % 20]);
        ok(await caller.get(`/api/holds/${hold.hold_id}`));
        ok(await caller.del(`/api/holds/${hold.hold_id}`));
        rounds++;
        await new Promise((resolve) => setTimeout(resolve, 5));
      }
      return rounds;
    })();
    busy.catch(() => {});
  });
  after(async () => {
    finished = true;
    assert.ok((await busy) > 0, 'the others were served all the while');
    const occupancy = await event.occupancy();
    assert.deepEqual([occupancy.held, occupancy.sold, occupancy.blocked], [0, 0, 0], 'nothing hostile changed anything');
    ok(await event.reserve(buyer, event.seats[0]), 201);
    await server.stop();
    const proof = await server.verify();
    assert.equal(proof.status, 0, proof.stdout + proof.stderr);
  });

  const reservePath = () => `${event.path}/seats/${event.seats[0].seat_id}/reserve`;
  const bearer = () => ({ authorization: `Bearer ${buyer.bearer}` });

  it('malformed JSON is invalid_request on every call that takes a body', async () => {
    const admin = organization.admin;
    const bodies = ['{', '}', '[', '{"a":}', "{'a':1}", '{"a":1,}', 'undefined', 'NaN', '{"a":01}', '{"a":"\u0001"}', '{"a":1}{"b":2}', '\u{feff}{}', '{"a":tru}',
      '{"a":"\\ud800"}', '{"a":"\\x"}', '/* c */{}', '{"source":"web","source":"web"}x', '{"\\u0000":1}', '{"cart_token":"a\\u0000b"}'];
    const targets = [['POST', reservePath()], ['POST', `${event.path}/holds`], ['POST', '/api/checkouts'], ['POST', '/api/admin/events'],
      ['PATCH', event.adminPath], ['PUT', `${event.adminPath}/layout`], ['POST', `${event.adminPath}/seats/block`], ['POST', '/api/admin/seats/release']];
    for (const [method, path] of targets) {
      for (const body of bodies) fails(await admin.send(method, path, body), 400, 'invalid_request');
    }
  });

  it('bad UTF-8 is invalid_request, in bodies and in paths', async () => {
    for (const bytes of [[0xff], [0xc3, 0x28], [0xe2, 0x82], [0xf0, 0x28, 0x8c, 0xbc], [0xed, 0xa0, 0x80], [0xc0, 0xaf], [0xf4, 0x90, 0x80, 0x80]]) {
      const body = Buffer.concat([Buffer.from('{"cart_token":"'), Buffer.from(bytes), Buffer.from('"}')]);
      fails(await buyer.send('POST', reservePath(), body), 400, 'invalid_request');
    }
    for (const path of ['/api/events/%ff%fe', '/api/events/%00', '/api/holds/%c3%28', `${event.path}%00/seats`, '/api/events/%', '/api/events/%zz']) {
      const response = await buyer.get(path);
      assert.ok([400, 404].includes(response.status), `${path}: ${response.status}`);
    }
  });

  it('wrong types and absurd numbers are invalid_request', async () => {
    const admin = organization.admin;
    for (const quantity of ['1e400', '-1e400', '9223372036854775808', '99999999999999999999999999999999999', '1.0000000000000001e0', '-0', '0.5', '1e-320', '""', '[]', '{}', 'true', 'null']) {
      fails(await buyer.send('POST', `${event.path}/holds`, `{"quantity":${quantity}}`), 400, 'invalid_request');
    }
    for (const value of ['1e400', '9223372036854775807', '9223372036854775808', '-9223372036854775808', '4294967296', '2147483648', '1e18']) {
      const name = uuid();
      const response = await admin.send('POST', '/api/admin/events', `{"name":"${name}","policy":{"hold_ttl_seconds":${value}}}`);
      fails(response, 400, 'invalid_request');
    }
  });

  it('bad ids are invalid_request wherever an id is expected', async () => {
    const good = uuid();
    const bad = ['1', 'null', good.slice(0, -1), `${good}0`, good.replaceAll('-', ''), `{${good}}`, good.replace(/./, 'g'), `${good}%20`, "'%20OR%201=1--", '%F0%9F%8E%AD', 'a'.repeat(500), '-'.repeat(36)];
    for (const id of bad) {
      for (const path of [`/api/events/${id}`, `/api/events/${id}/seats`, `/api/holds/${id}`, `/api/checkouts/${id}`]) {
        fails(await buyer.get(path), 400, 'invalid_request');
      }
      fails(await buyer.post(`${event.path}/seats/${id}/reserve`), 400, 'invalid_request');
      fails(await organization.admin.get(`/api/admin/audit?seat_id=${id}`), 400, 'invalid_request');
    }
  });

  it('deep nesting and huge strings are refused without a crash', async () => {
    for (const body of ['['.repeat(30000), '{"a":'.repeat(10000), `${'['.repeat(3000)}${']'.repeat(3000)}`, `{"source":"${'x'.repeat(60000)}"}`,
      `{"cart_token":${'['.repeat(2100)}${']'.repeat(2100)}}`]) {
      fails(await buyer.send('POST', reservePath(), body), 400, 'invalid_request');
    }
  });

  it('a body above 64 KiB is body_too_large, one just below is read', async () => {
    const padded = (size) => {
      const frame = '{"source":"nowhere","padding":""}';
      return `{"source":"nowhere","padding":"${'x'.repeat(size - frame.length)}"}`;
    };
    fails(await buyer.send('POST', reservePath(), padded(65536)), 400, 'invalid_request');
    for (const size of [65537, 200000, 3000000]) {
      const { text, status } = await exchange(server, rawRequest('POST', reservePath(), { ...bearer(), 'content-type': 'application/json', 'content-length': size }, padded(size)), { until: oneAnswer });
      assert.equal(status, 413, text.slice(0, 200));
      assert.match(text, /body_too_large/);
    }
    const claim = await exchange(server, rawRequest('POST', reservePath(), { ...bearer(), 'content-type': 'application/json', 'content-length': '99999999999' }), { until: oneAnswer });
    assert.equal(claim.status, 413);
    const chunked = Buffer.concat([rawRequest('POST', reservePath(), { ...bearer(), 'content-type': 'application/json', 'transfer-encoding': 'chunked' }),
      Buffer.from(`11170\r\n${'x'.repeat(0x11170)}\r\n0\r\n\r\n`)]);
    assert.equal((await exchange(server, chunked, { until: oneAnswer })).status, 413);
  });

  it('a layout may be large, but only after the token was looked at', async () => {
    const path = `${event.adminPath}/layout`;
    const size = 40 * 1024 * 1024;
    const stranger = await exchange(server, rawRequest('PUT', path, { 'content-type': 'application/json', 'content-length': size }), { until: oneAnswer });
    assert.equal(stranger.status, 401, 'no token: refused before any of the body was sent');
    const tooLarge = await exchange(server, rawRequest('PUT', path, { authorization: `Bearer ${organization.admin.bearer}`, 'content-type': 'application/json', 'content-length': size }), { until: oneAnswer });
    assert.equal(tooLarge.status, 413);
    const notAdmin = await exchange(server, rawRequest('PUT', path, { ...bearer(), 'content-type': 'application/json', 'content-length': 1024 * 1024 }), { until: oneAnswer });
    assert.equal(notAdmin.status, 403);
  });

  it('oversized headers are 431', async () => {
    for (const headers of [{ 'x-large': 'x'.repeat(40000) }, { authorization: `Bearer ${'x'.repeat(40000)}` },
      Object.fromEntries(Array.from({ length: 2000 }, (_, index) => [`x-h-${index}`, 'value of some length']))]) {
      const { status, outcome, text } = await exchange(server, rawRequest('GET', '/api/events', headers), { until: oneAnswer });
      assert.ok(status === 431 || (status === 0 && outcome !== 'limit'), `${status} ${outcome} ${text.slice(0, 100)}`);
    }
    const line = await exchange(server, rawRequest('GET', `/api/events?x=${'y'.repeat(60000)}`, bearer()), { until: oneAnswer });
    assert.ok([414, 431].includes(line.status) || (line.status === 0 && line.outcome !== 'limit'), `${line.status} ${line.outcome}`);
  });

  it('a header just above the limit gets the whole error envelope', async () => {
    const response = await send(`${server.url}/api/events`, { headers: { ...bearer(), 'x-large': 'x'.repeat(17 * 1024) } });
    fails(response, 431, 'headers_too_large');
  });

  it('Content-Length with Transfer-Encoding is refused', async () => {
    const body = '0\r\n\r\n';
    for (const headers of [{ 'content-length': body.length, 'transfer-encoding': 'chunked' }, { 'transfer-encoding': 'chunked', 'content-length': 0 },
      { 'content-length': 2, 'transfer-encoding': 'identity' }]) {
      const { status, outcome } = await exchange(server, rawRequest('POST', reservePath(), { ...bearer(), 'content-type': 'application/json', ...headers }, body), { until: oneAnswer });
      assert.ok(status === 400 || (status === 0 && outcome !== 'limit'), `${status} ${outcome}`);
    }
  });

  it('smuggled requests behind a refused one are never carried out', async () => {
    const inner = `POST ${reservePath()} HTTP/1.1\r\nhost: x\r\nauthorization: Bearer ${buyer.bearer}\r\ncontent-length: 0\r\n\r\n`;
    const outer = rawRequest('POST', '/api/checkouts', { ...bearer(), 'content-type': 'application/json', 'content-length': 4, 'transfer-encoding': 'chunked' }, `0\r\n\r\n${inner}`);
    const { text } = await exchange(server, outer, { limitMs: 3000 });
    assert.ok(!/ 201 /.test(text), text.slice(0, 500));
  });

  it('bad lengths and chunks end the connection with 400 at most', async () => {
    const base = { ...bearer(), 'content-type': 'application/json' };
    const cases = [
      rawRequest('POST', reservePath(), { ...base, 'content-length': '-5' }, '{}'),
      rawRequest('POST', reservePath(), { ...base, 'content-length': 'abc' }, '{}'),
      rawRequest('POST', reservePath(), { ...base, 'content-length': '2, 3' }, '{}'),
      rawRequest('POST', reservePath(), { ...base, 'content-length': '99999999999999999999999' }, '{}'),
      Buffer.from(`POST ${reservePath()} HTTP/1.1\r\nhost: x\r\nauthorization: Bearer ${buyer.bearer}\r\ncontent-length: 2\r\ncontent-length: 5\r\n\r\n{}`),
      rawRequest('POST', reservePath(), { ...base, 'transfer-encoding': 'chunked' }, 'zz\r\n{}\r\n0\r\n\r\n'),
      rawRequest('POST', reservePath(), { ...base, 'transfer-encoding': 'chunked' }, 'ffffffffffffffffff\r\n{}\r\n0\r\n\r\n'),
      rawRequest('POST', reservePath(), { ...base, 'transfer-encoding': 'gzip, chunked' }, '2\r\n[]\r\n0\r\n\r\n'),
    ];
    for (const bytes of cases) {
      const { status, outcome } = await exchange(server, bytes, { until: oneAnswer, end: true });
      assert.ok(status === 0 || (status >= 400 && status < 500) || status === 501, `${status} ${outcome}: ${bytes.toString('latin1').slice(0, 90)}`);
      assert.notEqual(outcome, 'limit');
    }
  });

  it('the wrong content type is unsupported_media_type', async () => {
    for (const type of ['text/plain', 'application/x-www-form-urlencoded', 'multipart/form-data; boundary=x', 'application/xml', 'application/jsonx', 'json']) {
      fails(await buyer.send('POST', '/api/checkouts', JSON.stringify({ event_id: event.id }), { headers: { 'content-type': type } }), 415, 'unsupported_media_type');
    }
    fails(await buyer.send('POST', '/api/checkouts', '{}', { headers: { 'content-type': 'application/json; charset=utf-8' } }), 400, 'invalid_request');
    fails(await buyer.send('POST', '/api/checkouts', '{}', { headers: { 'content-type': 'APPLICATION/JSON' } }), 400, 'invalid_request');
  });

  it('methods nobody knows are refused', async () => {
    for (const method of ['BREW', 'TRACE', 'CONNECT', 'PROPFIND', 'get', 'A'.repeat(200)]) {
      const { status, outcome, text } = await exchange(server, rawRequest(method, '/api/events', bearer()), { until: oneAnswer });
      assert.ok([400, 404, 405, 501].includes(status) || (status === 0 && outcome !== 'limit'), `${method.slice(0, 20)}: ${status} ${outcome} ${text.slice(0, 100)}`);
    }
  });

  it('HEAD gives headers and no body', async () => {
    const { text, status } = await exchange(server, rawRequest('HEAD', '/healthz', { connection: 'close' }));
    assert.ok([200, 405].includes(status), text);
    assert.equal(text.split('\r\n\r\n')[1] ?? '', '');
  });

  it('garbage on the wire ends that connection alone', async () => {
    const random = Buffer.from(Array.from({ length: 4096 }, (_, index) => (index * 7919 + 13) % 256));
    for (const bytes of [random, Buffer.from('\r\n\r\n\r\n'), Buffer.from('GET\r\n\r\n'), Buffer.from('GET / HTTP/9.9\r\n\r\n'), Buffer.from('GET / HTTP/1.1\r\nbad header\r\n\r\n'),
      Buffer.from('\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03', 'latin1'), Buffer.from('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n')]) {
      // What is no whole request yet may be waited for; those connections are timed out in the end.
      const { status } = await exchange(server, bytes, { limitMs: 700 });
      assert.ok(status === 0 || status >= 400, `${status} for ${JSON.stringify(bytes.slice(0, 30).toString('latin1'))}`);
    }
    ok(await buyer.get('/api/events'));
  });

  it('a NUL on the wire reaches nothing: refused, or the path ends there', async () => {
    // The HTTP library hands the path over as a C string; what stands behind a NUL is never seen by anybody.
    for (const [target, most] of [['/\0x', 200], ['/api/events\0/../admin/events', 401], [`${event.path}\0`, 401], ['/no\0where', 404]]) {
      const { status } = await exchange(server, Buffer.from(`GET ${target} HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n`));
      assert.ok(status === 0 || status === 400 || status === most, `${JSON.stringify(target)}: ${status}`);
    }
    const header = await exchange(server, Buffer.from(`GET /api/events HTTP/1.1\r\nhost: x\r\nauthorization: Bearer \0${buyer.bearer}\r\nconnection: close\r\n\r\n`));
    assert.ok([0, 400, 401].includes(header.status), `${header.status}`);
  });

  it('pipelined requests are answered in order, garbage behind them ends the connection', async () => {
    const one = rawRequest('GET', '/healthz').toString();
    const { text } = await exchange(server, Buffer.from(`${one}${one}${one}\x01\x02 garbage\r\n\r\n`), { end: true });
    assert.equal((text.match(/HTTP\/1\.1 200/g) ?? []).length, 3, text.slice(0, 300));
  });

  it('half-open, slow and vanishing clients do not disturb', async () => {
    const sockets = Array.from({ length: 60 }, (_, index) => {
      const socket = connect(server.port, '127.0.0.1');
      socket.on('error', () => {});
      const head = `POST ${reservePath()} HTTP/1.1\r\nhost: x\r\nauthorization: Bearer ${buyer.bearer}\r\ncontent-type: application/json\r\ncontent-length: 20\r\n\r\n`;
      if (index % 3 === 0) socket.write(head.slice(0, 30));
      else if (index % 3 === 1) socket.write(`${head}{"sour`);
      return socket;
    });
    for (let i = 0; i < 20; i++) ok(await buyer.get('/api/events'));
    for (const [index, socket] of sockets.entries()) {
      if (index % 2 === 0) socket.resetAndDestroy?.();
      socket.destroy();
    }
    ok(await buyer.get('/api/events'));
  });

  it('hostile text in names and notes comes back as it was, and only as text', async () => {
    const name = `Robert'); DROP TABLE seats;-- <script>alert(1)</script> \\ " \t é 劇 🎭`;
    const made = ok(await organization.admin.post('/api/admin/events', { name }), 201);
    assert.equal(made.name, name);
    const listed = ok(await organization.admin.get('/api/admin/events')).find((entry) => entry.event_id === made.event_id);
    assert.equal(listed.name, name);
    assert.equal((await send(`${server.url}/`)).text.includes('<script>alert(1)</script>'), false);
  });

  it('hostile query strings are refused or ignored, never obeyed', async () => {
    const seats = ok(await buyer.get(`${event.path}/seats`)).length;
    assert.equal(seats, 50);
    for (const query of ["section=A'%20OR%20'1'='1", 'section=%00', 'section=A&section=B', 'section=', 'subsection=1', 'section=A&subsection=99999999999999999999', 'section[]=A', '&&&=', '%']) {
      const response = await buyer.get(`${event.path}/seats?${query}`);
      assert.ok([200, 400].includes(response.status), `${query}: ${response.status}`);
    }
    for (const query of ['after=', "after='", 'limit=-1', 'limit=99999999999999999999', 'limit=x', 'action=%00']) {
      const response = await organization.admin.get(`/api/admin/audit?${query}`);
      assert.ok([200, 400].includes(response.status), `${query}: ${response.status} ${response.text}`);
    }
  });

  it('an answer to a bad request never shows the inside', async () => {
    const response = await buyer.post(`${event.path}/seats/${uuid()}/reserve`, '{"source":');
    for (const word of ['sqlite', 'SELECT', '.c:', '/src/', 'jansson', server.dir]) assert.ok(!response.text.includes(word), word);
  });

  it('errors keep the connection usable for the next request', async () => {
    const bad = rawRequest('POST', reservePath(), { ...bearer(), 'content-type': 'application/json', 'content-length': 1 }, '{').toString();
    const good = rawRequest('GET', '/api/events', bearer()).toString();
    const { text } = await exchange(server, Buffer.from(bad + good), { until: (seen) => (seen.match(/HTTP\/1\.1 \d{3}/g) ?? []).length === 2 });
    assert.deepEqual(text.match(/HTTP\/1\.1 \d{3}/g), ['HTTP/1.1 400', 'HTTP/1.1 200']);
  });
});
