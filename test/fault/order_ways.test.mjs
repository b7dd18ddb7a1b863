// SPDX-License-Identifier: Apache-2.0
// Ways to Kafka: a topic for each event, TLS with a password, and topics that somebody deleted.

import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';

import { anyKafka, deleteTopic, getMessages } from '../lib/kafka.mjs';
import { makeDatabase, Postgres } from '../lib/postgres.mjs';
import { runAsync, Server, tempDir } from '../lib/server.mjs';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { waitFor } from '../lib/wait.mjs';
import { block, layoutOf, metric, World } from '../lib/world.mjs';

const PARTITIONS = 4;
// Several brokers do not forget a deleted topic at the same moment, and a node that starts in between finds it on some.
const ONE_BROKER = { skip: process.env.HOLDFAST_TEST_KAFKA !== '1' && 'needs a real Kafka of one broker' };
const REAL_ONLY = { skip: (process.env.HOLDFAST_TEST_KAFKA ?? '') === '' && 'needs a real Kafka' };

describe('ways to Kafka', () => {
  let postgres;
  let kafka;

  before(async () => {
    postgres = new Postgres();
    kafka = await anyKafka({ topics: [['ways.replies.node', 1], ['ways.dead-letters', 1]] });
  });
  after(async () => {
    await kafka.stop();
    postgres.destroy();
  });

  const serve = async (prefix, { url = kafka.url, store = makeDatabase(postgres.url), secret, args = [] } = {}) => {
    const node = new Server({
      store,
      secret,
      args: ['--order', url, '--order-prefix', prefix, '--node-name', 'node', '--order-partitions', String(PARTITIONS), '--order-wait', '30',
        '--order-events', 'off', ...(kafka.isMock ? ['--order-make-topics', 'off'] : []), ...args],
    });
    await node.launch();
    return node;
  };
  const layout = layoutOf(block('A', 1, [5]), block('B', 2, [5]));

  it('a topic for each event, made when it is published', async () => {
    const node = await serve('ways', { args: ['--order-topics', 'event'] });
    const organization = await new World(node).organization();
    const event = await organization.event({ layout });
    const topic = `event-id-${event.id}______ticket-command-request______ways`;
    if (kafka.isMock) await kafka.topic(topic, PARTITIONS);
    await waitFor('the partitions of the topic', async () => (await metric(node, 'holdfast_order_partitions')) === PARTITIONS);
    for (const seat of event.seats) assert.equal((await event.reserve(organization.buyer(), seat)).status, 201);
    const messages = getMessages(kafka, topic);
    assert.equal(messages.length, event.seats.length);
    // (section × 10 + subsection − 1) mod partitions, and no hash of the event.
    assert.deepEqual([...new Set(messages.map((message) => message.partition))].sort(), [0, 11 % PARTITIONS]);
    await node.stop();
  });

  it('TLS and a password, from a file; a wrong one is one sentence', REAL_ONLY, async () => {
    const node = await serve('secure', { url: kafka.secureUrl, args: ['--order-config', kafka.propertiesFile] });
    const organization = await new World(node).organization();
    const event = await organization.event({ layout });
    assert.equal((await event.reserve(organization.buyer(), event.seats[0])).status, 201);
    await node.stop();
    assert.ok(!node.output().includes('for the tests only'), 'no secret in the log');

    const wrong = join(tempDir(), 'client.properties');
    writeFileSync(wrong, readFileSync(kafka.propertiesFile, 'utf8').replace(/sasl\.password=.*/, 'sasl.password=guess'), { mode: 0o600 });
    const refused = await runAsync(['serve', '--listen', '127.0.0.1:0', '--store', makeDatabase(postgres.url), '--order', kafka.secureUrl,
      '--order-config', wrong, '--node-name', 'node', '--jwt-secret-file', node.secretFile]);
    assert.notEqual(refused.status, 0);
    assert.equal(refused.stderr.trim().split('\n').filter((line) => line.startsWith('holdfast:')).length, 1, refused.stderr);
    assert.ok(!refused.stderr.includes('guess'));
  });

  it('a topic that was deleted and made anew loses no command', ONE_BROKER, async () => {
    const first = await serve('anew');
    const organization = await new World(first).organization();
    const event = await organization.event({ layout });
    for (const seat of event.seats.slice(0, 4)) assert.equal((await event.reserve(organization.buyer(), seat)).status, 201);
    await waitFor('the store to have noted how far it is done', () => first.select('SELECT max(next_offset) FROM order_partitions')[0][0] === '4');
    await first.stop();
    deleteTopic(kafka, 'anew.commands');
    await waitFor('the topic to be gone', () => getMessages(kafka, 'anew.commands').length === 0);
    const second = await serve('anew', { store: first.store, secret: first.secret });
    const again = new (organization.constructor)(new World(second), organization.id);
    const answer = await Object.assign(new (event.constructor)(again, event.id), { seats: event.seats }).reserve(again.buyer(), event.seats[4]);
    assert.equal(answer.status, 201, answer.text);
    assert.match(second.output(), /the topic was made anew/);
    await second.stop();
    const proof = await second.verify();
    assert.equal(proof.status, 0, proof.stdout + proof.stderr);
  });
});
