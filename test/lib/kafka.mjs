// SPDX-License-Identifier: Apache-2.0
// A Kafka of a test's own. MockKafka is librdkafka's mock cluster, as a program beside the tested binary: there in no time,
// but its topics must be made here, and its groups are slow to form. RealKafka is Apache Kafka (scripts/kafka), one broker or
// three, which can be killed, frozen and started again, and cut off from single nodes. anyKafka() is the one that
// HOLDFAST_TEST_KAFKA asks for.

import { spawn, spawnSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';

import { KafkaProxy } from './kafka_proxy.mjs';
import { binary } from './server.mjs';
import { within } from './wait.mjs';

const root = resolve(dirname(fileURLToPath(import.meta.url)), '../..');
const script = join(root, 'scripts/kafka');
const SKIPPED = 3;
export const PARTITION_COUNT = 100;

const running = new Set();
process.on('exit', () => {
  for (const kafka of running) kafka.destroy();
});

/** The topics that nodes with these names need. */
export function topicsOf(nodes, prefix = 'holdfast') {
  return [[`${prefix}.commands`, PARTITION_COUNT], [`${prefix}.dead-letters`, 1], [`${prefix}.events`, 10], ...nodes.map((node) => [`${prefix}.replies.${node}`, 1])];
}

export class MockKafka {
  /** `nodes`: the names of those that will use it; `topics`: more of them, as [name, partitions]. */
  static async start({ brokers = 1, nodes = [], prefix = 'holdfast', topics = [] } = {}) {
    const kafka = new MockKafka();
    const list = [...topicsOf(nodes, prefix), ...topics].map(([name, count]) => `${name}:${count}`);
    kafka.isMock = true;
    kafka.brokers = brokers;
    kafka.child = spawn(join(dirname(binary), 'test/kafka-mock'), [String(brokers), ...list], { stdio: ['pipe', 'pipe', 'inherit'] });
    kafka.exited = new Promise((done) => kafka.child.on('close', done));
    kafka.waiting = [];
    createInterface({ input: kafka.child.stdout }).on('line', (line) => kafka.waiting.shift()?.(line));
    running.add(kafka);
    const failed = new Promise((_, fail) => kafka.child.on('error', fail));
    kafka.url = await within('the mock Kafka to start', Promise.race([kafka.nextLine(), failed]), 30000);
    return kafka;
  }

  nextLine() {
    return new Promise((done) => this.waiting.push(done));
  }

  async command(...words) {
    const answer = this.nextLine();
    this.child.stdin.write(`${words.join(' ')}\n`);
    const text = await within(`the mock Kafka: ${words.join(' ')}`, answer, 30000);
    if (text !== 'ok') throw new Error(`the mock Kafka: ${words.join(' ')}: ${text}`);
  }

  topic(name, partitions) {
    return this.command('topic', name, partitions);
  }

  down(broker = 1) {
    return this.command('down', broker);
  }

  up(broker = 1) {
    return this.command('up', broker);
  }

  delay(broker, ms) {
    return this.command('delay', broker, ms);
  }

  /** The next `count` requests of a kind (Kafka's numbers) are answered with an error (Kafka's numbers too). */
  fail(apiKey, error, count = 1) {
    return this.command('fail', apiKey, error, count);
  }

  async stop() {
    this.child.stdin.end();
    await within('the mock Kafka to end', this.exited, 30000);
    running.delete(this);
  }

  destroy() {
    running.delete(this);
    this.child?.kill('SIGKILL');
  }
}

function kafkaScript(...words) {
  return spawnSync(script, words.map(String), { encoding: 'utf8', timeout: 900000 });
}

export class RealKafka {
  /** `properties`: more of the brokers' own; `behind`: proxies that listen. Throws KafkaSkipped where no Kafka can be had. */
  static start({ brokers = 1, properties = {}, behind = [] } = {}) {
    const kafka = new RealKafka();
    kafka.proxies = behind;
    mkdirSync(join(root, 'build/kafka'), { recursive: true });
    kafka.dir = mkdtempSync(join(root, 'build/kafka/cluster-'));
    kafka.brokers = brokers;
    running.add(kafka);
    const words = [...behind.map((proxy) => `behind=${proxy.ports.join(',')}`), ...Object.entries(properties).map(([name, value]) => `${name}=${value}`)];
    const result = kafkaScript('start', kafka.dir, brokers, ...words);
    if (result.status !== 0) {
      kafka.destroy();
      throw result.status === SKIPPED ? new KafkaSkipped(result.stderr) : new Error(`Kafka did not start: ${result.stderr}`);
    }
    kafka.url = result.stdout.trim();
    const places = readFileSync(join(kafka.dir, 'behind'), 'utf8').split('\n');
    for (const [index, proxy] of behind.entries()) proxy.targets = places[index].split(',').map(Number);
    kafka.secureUrl = readFileSync(join(kafka.dir, 'secure.url'), 'utf8').trim();
    kafka.propertiesFile = join(kafka.dir, 'client.properties');
    return kafka;
  }

  /** One whose nodes each have a proxy of their own before it. `query`: properties of the nodes' clients. */
  static async behindProxies({ brokers = 1, nodes, query = '' }) {
    const behind = [];
    for (let i = 0; i < nodes; i++) behind.push(await KafkaProxy.listen(brokers, query));
    try {
      return RealKafka.start({ brokers, behind });
    } catch (error) {
      for (const proxy of behind) proxy.close();
      throw error;
    }
  }

  /** Where a node finds it. */
  urlOf(index) {
    return this.proxies[index]?.url ?? this.url;
  }

  run(...words) {
    const result = kafkaScript(...words);
    if (result.status !== 0) throw new Error(`kafka ${words.join(' ')}: ${result.stderr}`);
  }

  kill(broker) {
    this.run('kill', this.dir, broker);
  }

  freeze(broker) {
    this.run('freeze', this.dir, broker);
  }

  thaw(broker) {
    this.run('thaw', this.dir, broker);
  }

  /** Starts a killed one with its data. */
  again(broker) {
    this.run('again', this.dir, broker);
  }

  log(broker) {
    return readFileSync(join(this.dir, `broker-${broker}`, 'log'), 'utf8');
  }

  async topic() {} // nodes make their own

  async stop() {
    this.destroy();
  }

  destroy() {
    running.delete(this);
    for (const proxy of this.proxies) proxy.close();
    kafkaScript('stop', this.dir);
    rmSync(this.dir, { recursive: true, force: true });
  }
}

export class KafkaSkipped extends Error {}

const tool = (...words) => [join(dirname(binary), 'test/kafka-tool'), words];

/** Another program's message in a topic. */
export function putMessage(kafka, topic, partition, value) {
  const [program, words] = tool('put', brokersOf(kafka), topic, String(partition));
  const result = spawnSync(program, words, { input: value, encoding: 'utf8', timeout: 60000 });
  if (result.status !== 0) throw new Error(`kafka-tool: ${result.stderr}`);
}

/** The topic is gone, as if somebody had deleted it. Real ones only. */
export function deleteTopic(kafka, topic) {
  const [program, words] = tool('delete', brokersOf(kafka), topic);
  const result = spawnSync(program, words, { encoding: 'utf8', timeout: 60000 });
  if (result.status !== 0) throw new Error(`kafka-tool: ${result.stderr}`);
}

/** All messages of a topic: [{partition, offset, key, value}], key and value as text. */
export function getMessages(kafka, topic) {
  const [program, words] = tool('get', brokersOf(kafka), topic);
  const result = spawnSync(program, words, { encoding: 'utf8', timeout: 60000, maxBuffer: 1 << 28 });
  if (result.status !== 0) throw new Error(`kafka-tool: ${result.stderr}`);
  const text = (hex) => (hex === '-' ? '' : Buffer.from(hex, 'hex').toString('utf8'));
  return result.stdout.split('\n').filter(Boolean).map((line) => line.split(' '))
    .map(([partition, offset, key, value]) => ({ partition: Number(partition), offset: Number(offset), key: text(key), value: text(value) }));
}

const brokersOf = (kafka) => /^kafka:\/\/([^/?]+)/.exec(kafka.url)[1];

/** HOLDFAST_TEST_KAFKA: a number of brokers to start for real, or kafka://… that is there already; else the mock. */
export async function anyKafka(options = {}) {
  const wanted = process.env.HOLDFAST_TEST_KAFKA ?? '';
  if (wanted === '') return MockKafka.start(options);
  if (/^[0-9]+$/.test(wanted)) return RealKafka.start({ brokers: Number(wanted) });
  return { url: wanted, async topic() {}, async stop() {}, destroy() {} };
}
