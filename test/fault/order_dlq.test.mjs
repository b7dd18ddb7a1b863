// SPDX-License-Identifier: Apache-2.0
// Commands that no node can make sense of: they go to the dead letters with their reason, those behind them are decided all
// the same, and `holdfast dlq` lists them, beside a running node, as often as it is asked.

import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';

import { ok } from '../lib/client.mjs';
import { anyKafka, putMessage } from '../lib/kafka.mjs';
import { makeDatabase, Postgres } from '../lib/postgres.mjs';
import { runAsync, Server } from '../lib/server.mjs';
import { TIME } from '../lib/shape.mjs';
import { waitFor } from '../lib/wait.mjs';
import { block, layoutOf, metric, World } from '../lib/world.mjs';

const TOPIC = 'holdfast.commands';
const PARTITIONS = 100;

describe('dead letters of commands', () => {
  let postgres;
  let kafka;
  let node;

  before(async () => {
    postgres = new Postgres();
    kafka = await anyKafka({ nodes: ['reader'] });
    const args = ['--order', kafka.url, '--node-name', 'reader', ...(kafka.isMock ? ['--order-make-topics', 'off'] : [])];
    node = new Server({ store: makeDatabase(postgres.url), args });
    await node.launch();
  });
  after(async () => {
    await node.stop();
    await kafka.stop();
    postgres.destroy();
  });

  const list = (...words) => runAsync(['dlq', '--order', kafka.url, ...words]);

  it('an empty list is a list', async () => {
    const [table, json] = [await list(), await list('commands', '--json')];
    assert.equal(table.status, 0, table.stderr);
    assert.equal(table.stdout, '0 dead letters\n');
    assert.deepEqual(JSON.parse(json.stdout), []);
  });

  it('what makes no sense is put aside with its reason, and what comes behind it is decided', async () => {
    const before1 = await metric(node, 'holdfast_order_dead_letters_total');
    const values = ['', 'not a command', Buffer.from([1, 2, 3, 4]), 'x'.repeat(5000)];
    for (const [partition, value] of values.entries()) putMessage(kafka, TOPIC, partition, value);
    await waitFor('all of them to be put aside', async () => (await metric(node, 'holdfast_order_dead_letters_total')) === before1 + values.length, 60000, 50);

    const organization = await new World(node).organization();
    const event = await organization.event({ layout: layoutOf(...Array.from({ length: 26 }, (_, i) => block(String.fromCharCode(65 + i), 1, [1]))) });
    for (const seat of event.seats) await event.hold(organization.buyer(), seat);
    assert.equal((await event.occupancy()).held, event.seats.length);

    const json = await list('--json');
    assert.equal(json.status, 0, json.stderr);
    const letters = JSON.parse(json.stdout);
    assert.equal(letters.length, values.length);
    for (const letter of letters) {
      assert.match(letter.dead_at, TIME);
      assert.equal(letter.topic, TOPIC);
      assert.ok(letter.partition >= 0 && letter.partition < PARTITIONS && letter.offset >= 0);
      assert.ok(letter.reason.length > 0);
      assert.equal(letter.size, values[letter.partition].length);
      assert.equal(letter.command, null);
    }
    assert.deepEqual(letters.map((letter) => letter.partition).sort(), values.map((_, partition) => partition));
    assert.deepEqual(JSON.parse((await list('--json')).stdout), letters, 'listing takes nothing away');

    const newest = JSON.parse((await list('commands', '--json', '--limit', '1')).stdout);
    assert.deepEqual(newest, letters.slice(0, 1));
    const table = (await list('--limit', '3')).stdout.trimEnd().split('\n');
    assert.equal(table.length, 5, 'a head, three letters and their count');
    assert.match(table[1], /holdfast\.commands\/\d+\/\d+/);
    assert.equal(table[4], '3 dead letters');
  });

  it('the dead letters of the store are another list', async () => {
    const stored = await runAsync(['dlq', 'list', '--store', node.store]);
    assert.equal(stored.status, 0, stored.stderr);
    assert.match(stored.stdout, /^0 dead letters/);
    assert.equal((await runAsync(['dlq', 'list', '--order', kafka.url])).status, 2);
    assert.equal((await list('letters')).status, 2);
    assert.equal((await list('--limit', '0')).status, 2);
  });

  it('a broker that is not there is one sentence', async () => {
    const result = await runAsync(['dlq', 'commands', '--order', 'kafka://127.0.0.1:1']);
    assert.equal(result.status, 1);
    assert.match(result.stderr, /^holdfast: [^\n]+\n$/);
    assert.equal(result.stdout, '');
  });
});
