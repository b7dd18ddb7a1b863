// SPDX-License-Identifier: Apache-2.0
// What takes long by nature, all at the same time on one server: clients that send half a request and wait, the heartbeat
// of a stream, the reaper's turn. With HOLDFAST_SLOW=1 also what takes a minute: idle connections and snapshots.

import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { connect } from 'node:net';
import { after, before, describe, it } from 'node:test';

import { fails, ok, send } from '../lib/client.mjs';
import { start } from '../lib/server.mjs';
import { openEventStream } from '../lib/sse.mjs';
import { now } from '../lib/token.mjs';
import { pause, waitFor } from '../lib/wait.mjs';
import { metric, World } from '../lib/world.mjs';

const minute = process.env.HOLDFAST_SLOW ? {} : { skip: 'takes a minute: set HOLDFAST_SLOW=1' };

describe('slow things', { concurrency: 8 }, () => {
  let server;
  let organization;

  before(async () => {
    server = await start();
    organization = await new World(server).organization();
  });
  after(() => server.stop());

  /** Opens a connection, sends the bytes, and resolves with the seconds until the server closes it. */
  const lifetime = (bytes, drip) => new Promise((resolve, reject) => {
    const from = Date.now();
    const socket = connect(server.port, '127.0.0.1', () => {
      if (bytes.length > 0) socket.write(bytes);
    });
    const dripper = drip ? setInterval(() => socket.writable && socket.write(drip), 2000) : undefined;
    const limit = setTimeout(() => {
      clearInterval(dripper);
      socket.destroy();
      reject(new Error(`still open after 80 s: ${JSON.stringify(bytes.slice(0, 40))}`));
    }, 80000);
    socket.on('error', () => {});
    socket.resume();
    socket.on('close', () => {
      clearTimeout(limit);
      clearInterval(dripper);
      resolve((Date.now() - from) / 1000);
    });
  });

  it('half a request is waited for, but not for ever, however it drips', async () => {
    const timeouts = await metric(server, 'holdfast_http_timeouts_total');
    const head = `POST /api/checkouts HTTP/1.1\r\nhost: x\r\nauthorization: Bearer ${organization.buyer().bearer}\r\ncontent-type: application/json\r\ncontent-length: 500\r\n\r\n`;
    const times = await Promise.all([lifetime('GET /api/ev'), lifetime(head.slice(0, 60)), lifetime(`${head}{"event_id":`), lifetime(`${head}{"`, 'x'), lifetime('GET / HTTP/1.1\r\n', 'x-slow: y\r\n')]);
    for (const [index, seconds] of times.entries()) assert.ok(seconds > 5 && seconds < 62, `case ${index} was closed after ${seconds} s`);
    assert.ok((await metric(server, 'holdfast_http_timeouts_total')) >= timeouts + times.length, 'they are counted');
    ok(await organization.buyer().get('/api/events'));
  });

  it('a stream gets a heartbeat every fifteen seconds', async () => {
    const event = await organization.event();
    const stream = await openEventStream(event, organization.buyer());
    const { comments } = stream.parser;
    await waitFor('a heartbeat', () => stream.parser.comments > comments);
    const first = Date.now();
    await waitFor('the next heartbeat', () => stream.parser.comments > comments + 1);
    assert.ok(Date.now() - first > 10000, 'not more often than they should');
    await event.hold(organization.buyer(), event.seats[0]);
    await stream.waitSeat(0, 'held');
    stream.close();
  });

  it('the reaper takes a turn every thirty seconds and says when', async () => {
    await waitFor('the reaper\'s first turn', async () => (await metric(server, 'holdfast_reaper_runs_total')) >= 1, 90000, 250);
    const last = await metric(server, 'holdfast_reaper_last_run_timestamp_seconds');
    assert.ok(Math.abs(now() - last) <= 10, `last run ${last}`);
    assert.equal(await metric(server, 'holdfast_reaper_failed_total'), 0);
    assert.equal(await metric(server, 'holdfast_holds_overdue'), 0);
  });

  it('a database locked from outside: refused or late, never lied about, and service again', async () => {
    const other = await start();
    const own = await new World(other).organization();
    const event = await own.event();
    await event.hold(own.buyer(), event.seats[0]);
    const tool = spawn('sqlite3', [other.database], { stdio: ['pipe', 'pipe', 'pipe'] });
    let said = '';
    tool.stdout.on('data', (text) => (said += text));
    tool.stdin.write('BEGIN IMMEDIATE;\nSELECT \'locked\';\n');
    await waitFor('the lock', () => said.includes('locked'));
    const answers = event.seats.slice(1, 11).map((seat) => event.reserve(own.buyer(), seat));
    const locked = await Promise.all(answers.slice(0, 5));
    for (const answer of locked) assert.ok([201, 503, 504].includes(answer.status), answer.text);
    const reading = await own.buyer().get(`${event.path}/occupancy`);
    assert.equal(ok(reading).total, 20, 'reads go on');
    tool.stdin.end('ROLLBACK;\n');
    await Promise.all(answers);
    await waitFor('service again', async () => (await event.reserve(own.buyer(), event.seats[19])).status === 201, 20000, 100);
    const held = new Set((await event.list()).filter((seat) => seat.status === 'held').map((seat) => seat.seat_id));
    for (const [index, answer] of (await Promise.all(answers)).entries()) {
      if (answer.status === 201) assert.ok(held.has(event.seats[index + 1].seat_id), 'what was acknowledged is there');
      if (answer.status === 503) {
        failsRetry(answer);
        assert.ok(!held.has(event.seats[index + 1].seat_id), 'what was refused is not');
      }
    }
    await other.stop();
    const proof = await other.verify();
    assert.equal(proof.status, 0, proof.stdout + proof.stderr);
  });

  const failsRetry = (answer) => fails(answer, 503, answer.body.error.code);

  it('an idle connection is closed in the end', minute, async () => {
    const seconds = await lifetime('');
    assert.ok(seconds > 20 && seconds < 75, `${seconds} s`);
  });

  it('occupancy is kept once a minute', minute, async () => {
    const event = await organization.event();
    await event.hold(organization.buyer(), event.seats[0]);
    const [row] = await waitFor('a snapshot', async () => {
      const rows = ok(await organization.admin.get(`${event.adminPath}/occupancy/history`));
      return rows.length > 0 ? rows : undefined;
    }, 70000, 500);
    assert.deepEqual([row.available, row.held, row.sold, row.blocked, row.total], [19, 1, 0, 0, 20]);
  });

  it('many clients that say nothing leave room for those who speak', async () => {
    const sockets = Array.from({ length: 500 }, () => connect(server.port, '127.0.0.1'));
    for (const socket of sockets) socket.on('error', () => {});
    await pause(300);
    for (let i = 0; i < 20; i++) assert.equal((await send(`${server.url}/healthz`)).status, 200);
    for (const socket of sockets) socket.destroy();
  });
});
