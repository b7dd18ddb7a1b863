// SPDX-License-Identifier: Apache-2.0
// PostgreSQL in trouble under traffic over several nodes with Redis: killed, its connections cut again and again.
// Nothing is acknowledged that is not so, and service comes back by itself on every node.

import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { after, before, describe, it } from 'node:test';

import { Scene } from '../lib/traffic.mjs';
import { pause, waitFor } from '../lib/wait.mjs';
import { block, layoutOf } from '../lib/world.mjs';

describe('several nodes whose PostgreSQL is in trouble', () => {
  let scene;
  before(async () => {
    scene = await Scene.open({ nodes: 2 });
  });
  after(() => scene.close());

  it('crashed and started again', async () => {
    await scene.play(async (traffic) => {
      await scene.postgres.restartAsync('immediate');
      await scene.moves(traffic, 20);
      await scene.nodes.ready();
    });
  });

  it('best available passes seats that somebody has locked, however many', async () => {
    const event = await scene.organization.event({ layout: layoutOf(block('A', 1, Array(6).fill(20))) });
    const seats = event.seats.slice(0, 60).map((seat) => `'${seat.seat_id}'`);
    const locker = spawn('psql', ['-X', '-q', '-d', scene.nodes.store], { stdio: ['pipe', 'ignore', 'ignore'] });
    locker.stdin.write(`BEGIN; SELECT 1 FROM seats WHERE id IN (${seats}) FOR UPDATE;\n`);
    try {
      await waitFor('the locks', () => scene.nodes.select(
        `SELECT 1 FROM (SELECT 1 FROM seats WHERE id IN (${seats}) FOR UPDATE SKIP LOCKED) AS free`).length === 0);
      for (let i = 0; i < 6; i++) {
        const answer = await scene.nodes.at(i % 2, scene.organization.buyer()).post(`${event.path}/holds`, { quantity: 4 });
        assert.equal(answer.status, 201, JSON.stringify(answer.body));
        assert.ok(answer.body.data.holds.every((hold) => Number(hold.row) > 3), 'the first three rows are locked');
      }
    } finally {
      locker.stdin.end('ROLLBACK;\n');
    }
  });

  it('an event is changed however many sell its seats: they come one after the other', async () => {
    const event = await scene.organization.event();
    // As a batch of a node does: through the gate, then the row, and a while until the commit. There is always somebody.
    const sale = `DO $$ BEGIN
      FOR i IN 1..100000 LOOP
        PERFORM pg_advisory_xact_lock_shared(hashtextextended(organization_id::text || id::text, 0)) FROM events WHERE id = '${event.id}';
        PERFORM 1 FROM events WHERE id = '${event.id}' FOR KEY SHARE;
        PERFORM pg_sleep(0.02);
        COMMIT;
      END LOOP;
    END $$`;
    const sellers = Array.from({ length: 8 }, () => spawn('psql', ['-X', '-q', '-d', scene.nodes.store, '-c', sale], { stdio: 'ignore' }));
    try {
      await waitFor('all of them selling', () => Number(scene.nodes.select(
        "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND query LIKE 'DO %'")[0][0]) === sellers.length);
      for (let i = 0; i < 5; i++) {
        const answer = await scene.nodes.at(i % 2, scene.organization.admin).patch(event.adminPath, { name: `Change ${i}` });
        assert.equal(answer.status, 200, JSON.stringify(answer.body));
      }
    } finally {
      for (const seller of sellers) seller.kill('SIGKILL');
      scene.nodes.select("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE query LIKE 'DO %' AND pid <> pg_backend_pid()");
    }
    await scene.nodes.ready();
  });

  it('its connections cut again and again', async () => {
    await scene.play(async (traffic) => {
      for (let i = 0; i < 10; i++) {
        await pause(150);
        scene.nodes.select('SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()');
      }
      await scene.moves(traffic, 20);
      await scene.nodes.ready();
    });
  });
});
