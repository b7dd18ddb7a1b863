// SPDX-License-Identifier: Apache-2.0
// Unit, container and compose file: every option they set exists, and they agree with each other on ports, names, secrets
// and how long a node may take to stop.

import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { cpSync, existsSync, mkdirSync, readFileSync, readdirSync, statSync, symlinkSync, writeFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { describe, it } from 'node:test';

import { binary, run, tempDir } from '../lib/server.mjs';
import { anchorsOf, path, read, readYaml, tool } from './lib/files.mjs';

const METRICS_PORT = '9464';
const HTTP_PORT = '8080';
const DROP_INS = ['ops/systemd/webhook.conf', 'ops/systemd/order.conf'];
const DRAIN_SECONDS = 30; // two addresses and the lane, 10 s each

const help = run(['serve', '--help']).stdout;
const flags = new Set([...help.matchAll(/^ +--([a-z-]+)/gm)].map(([, name]) => name));
const variables = new Set([...flags].map((name) => `HOLDFAST_${name.toUpperCase().replaceAll('-', '_')}`));
const compose = readYaml('ops/container/compose.yaml');
const { node } = compose.services;
const overlay = readYaml('ops/container/compose.kafka.yaml');
const containerfile = read('ops/container/Containerfile').replaceAll('\\\n', ' ');
const unit = read('ops/systemd/holdfast.service');
const variablesIn = (text) => [...text.matchAll(/\b(HOLDFAST_[A-Z_]+)\s*[=:]/g)].map(([, name]) => name);
const seconds = (text) => Number(/^(\d+)s?$/.exec(text)[1]);
const setting = (text, name) => [...text.matchAll(new RegExp(`^${name}=(.*)$`, 'gm'))].map(([, value]) => value);

describe('options', () => {
  it('are read from --help', () => {
    for (const name of ['listen', 'store', 'warm', 'config', 'metrics-listen']) assert.ok(flags.has(name), name);
  });

  for (const file of ['ops/systemd/holdfast.service', 'ops/systemd/webhook.conf', 'ops/systemd/order.conf', 'ops/systemd/holdfast.env',
    'ops/container/Containerfile', 'ops/container/compose.yaml', 'ops/container/compose.kafka.yaml']) {
    it(`set by ${file} exist`, () => {
      const found = variablesIn(read(file));
      assert.ok(found.length > 0);
      for (const name of found) assert.ok(variables.has(name), `${name} is no option of holdfast serve`);
    });
  }

  it('written by make-secrets exist', () => {
    for (const [, name] of read('ops/container/make-secrets').matchAll(/printf '([a-z-]+) = /g)) assert.ok(flags.has(name), name);
  });

  it('named as flags in the operations page exist', () => {
    const page = read('docs/operations.md');
    const known = new Set(flags);
    for (const verb of ['registry', 'verify', 'dlq', 'token', 'migrate', 'import']) {
      for (const [, name] of run([verb, '--help']).stdout.matchAll(/^ +--([a-z-]+)/gm)) known.add(name);
    }
    for (const [, words] of page.matchAll(/\bholdfast (?:serve|registry|verify|dlq|token|migrate|import)\b([^\n`]*)/g)) {
      for (const [, name] of words.matchAll(/ --([a-z-]+)/g)) assert.ok(known.has(name), `--${name}`);
    }
  });
});

describe('the operations page', () => {
  const page = read('docs/operations.md');

  it('has links that lead somewhere', () => {
    for (const [, target] of page.matchAll(/\]\(([^)\s]+)\)/g)) {
      const [file, anchor] = target.split('#');
      if (/^https?:/.test(file)) continue;
      if (file) assert.ok(existsSync(path(join('docs', file))), target);
      if (anchor) assert.ok(anchorsOf(file ? read(join('docs', file)) : page).has(anchor), target);
    }
  });

  it('has a way out of every disaster', () => {
    for (const title of ['Redis lost completely', 'PostgreSQL lost', 'PostgreSQL lock timeouts', 'Redis and PostgreSQL lost together',
      'Reaper fails, holds pile up', 'Kafka lost', 'A partition stands still', 'A node lost', 'Network split', 'Clock skew', 'A stuck seat', 'Disk full']) {
      assert.ok(page.includes(`\n### ${title}\n`), title);
    }
  });
});

describe('the systemd unit', () => {
  it('starts the server, hardened, and gives it time to drain', () => {
    assert.deepEqual(setting(unit, 'ExecStart'), ['/usr/local/bin/holdfast serve']);
    for (const [name, value] of Object.entries({ NoNewPrivileges: 'yes', ProtectSystem: 'strict', Restart: 'on-failure', PrivateTmp: 'yes', CapabilityBoundingSet: '' })) {
      assert.deepEqual(setting(unit, name), [value], name);
    }
    assert.ok(seconds(setting(unit, 'TimeoutStopSec')[0]) > DRAIN_SECONDS);
    assert.ok(Number(setting(unit, 'LimitNOFILE')[0]) > 20000);
  });

  it('hands secrets over as credentials that are then read', () => {
    for (const text of [unit, ...DROP_INS.map(read)]) {
      const loaded = setting(text, 'LoadCredential').map((value) => value.split(':')[0]);
      const used = setting(text, 'Environment').flatMap((value) => [...value.matchAll(/%d\/([\w-]+)/g)].map(([, name]) => name));
      assert.ok(loaded.length > 0);
      assert.deepEqual(loaded, used);
    }
  });

  it('is one that systemd understands', (context) => {
    if (spawnSync('systemd-analyze', ['--version']).error) {
      context.diagnostic('systemd-analyze is not here: only the text was checked');
      return;
    }
    const directory = tempDir();
    const program = join(directory, 'holdfast'); // the path of the real one may have a space in it
    symlinkSync(binary, program);
    writeFileSync(join(directory, 'holdfast.service'), unit.replace('/usr/local/bin/holdfast', program));
    mkdirSync(join(directory, 'holdfast.service.d'));
    for (const file of DROP_INS) cpSync(path(file), join(directory, 'holdfast.service.d', basename(file)));
    const { status, output } = tool('systemd-analyze', ['verify', '--man=no', join(directory, 'holdfast.service')]);
    const ours = output.split('\n').filter((line) => line.includes('holdfast.service')).join('\n');
    assert.equal(ours, '', 'no complaint about it');
    assert.equal(status, 0, output);
  });

  it('comes with settings that are one line each', () => {
    for (const line of read('ops/systemd/holdfast.env').split('\n')) assert.match(line, /^(#.*|[A-Z_]+=\S+|)$/);
  });
});

describe('the container', () => {
  it('runs as nobody in particular, stops by SIGTERM, answers its own health check', () => {
    assert.match(containerfile, /^USER (?!0)\d+:\d+$/m);
    assert.match(containerfile, /^STOPSIGNAL SIGTERM$/m);
    assert.match(containerfile, new RegExp(`^HEALTHCHECK .*127\\.0\\.0\\.1:${HTTP_PORT}/readyz`, 'm'));
    assert.match(containerfile, /^ENTRYPOINT \["\/usr\/local\/bin\/holdfast"\]$/m);
    assert.match(containerfile, /test -f web\/dist\/index\.html/);
  });

  it('copies what is there and installs what the binary is linked with', () => {
    for (const [, from] of containerfile.matchAll(/^COPY (?!--from)(\S+) \S+$/gm)) assert.ok(existsSync(path(from)), from);
    // A build needs libNAME-dev; what it makes needs libNAME with its version.
    const built = [...read('packages.txt').matchAll(/^build\s+lib(\S+?)(?:-openssl|-gnutls)?-dev\b/gm)].map(([, name]) => name).filter((name) => name !== 'c6');
    assert.ok(built.length >= 5);
    for (const name of built) assert.match(containerfile, new RegExp(`\\blib${name.replace(/\d+$/, '')}[\\d.-]*\\b`), `lib${name}`);
  });

  it('listens where its port is exposed', () => {
    const [, exposed] = /^EXPOSE (.*)$/m.exec(containerfile);
    assert.deepEqual(exposed.split(' '), [HTTP_PORT, METRICS_PORT]);
    assert.match(containerfile, new RegExp(`HOLDFAST_LISTEN=0\\.0\\.0\\.0:${HTTP_PORT}\\b`));
    assert.match(containerfile, new RegExp(`HOLDFAST_METRICS_LISTEN=0\\.0\\.0\\.0:${METRICS_PORT}\\b`));
  });
});

describe('the compose file', () => {
  it('has every part, each with a health check, but for the proxy', () => {
    assert.deepEqual(Object.keys(compose.services).sort(), ['grafana', 'node', 'postgres', 'prometheus', 'proxy', 'redis']);
    for (const [name, service] of Object.entries(compose.services)) if (name !== 'proxy') assert.ok(service.healthcheck?.test, name);
    assert.match(compose.services.postgres.image, /:15$/);
    assert.match(compose.services.redis.image, /:7$/);
  });

  it('agrees with itself: services, networks, volumes and secrets exist', () => {
    for (const [name, service] of Object.entries(compose.services)) {
      for (const other of Object.keys(service.depends_on ?? {})) assert.ok(compose.services[other].healthcheck, `${name} waits for ${other}`);
      for (const network of Array.isArray(service.networks) ? service.networks : Object.keys(service.networks)) assert.ok(network in compose.networks, network);
      for (const secret of service.secrets ?? []) assert.ok(secret in compose.secrets, `${name}: ${secret}`);
      for (const volume of service.volumes ?? []) {
        const [from] = volume.split(':');
        if (from.startsWith('.')) assert.ok(existsSync(path(join('ops/container', from))), `${name}: ${from}`);
        else assert.ok(from in compose.volumes, `${name}: ${from}`);
      }
      const read = JSON.stringify([service.environment, service.command, service.healthcheck?.test]).matchAll(/\/run\/secrets\/([\w.-]+)/g);
      for (const [, secret] of read) assert.ok((service.secrets ?? []).includes(secret), `${name} reads ${secret} and is not given it`);
    }
    assert.ok(existsSync(path(join('ops/container', node.build.context, node.build.dockerfile))));
  });

  it('has no password in it', () => {
    for (const file of ['ops/container/compose.yaml', 'ops/container/compose.kafka.yaml']) assert.doesNotMatch(read(file), /(password|secret)[A-Z_]*: *"?(?!\/run\/secrets\/)[^\s"]/i);
  });

  it('lets a node drain', () => {
    assert.ok(seconds(node.stop_grace_period) > DRAIN_SECONDS);
  });

  it('has ports that fit: node, proxy, Prometheus', () => {
    assert.equal(node.environment.HOLDFAST_LISTEN, `0.0.0.0:${HTTP_PORT}`);
    assert.equal(node.environment.HOLDFAST_METRICS_LISTEN, `0.0.0.0:${METRICS_PORT}`);
    assert.ok(!node.ports, 'the nodes are reached through the proxy alone');
    const proxy = read('ops/container/proxy.conf');
    assert.match(proxy, new RegExp(`server node:${HTTP_PORT}\\b`));
    const [, listens] = /listen (\d+);/.exec(proxy);
    assert.ok(compose.services.proxy.ports.every((port) => port.endsWith(`:${listens}`)));
    assert.equal(node.environment.HOLDFAST_TRUSTED_PROXY, compose.services.proxy.networks.inside.ipv4_address);
    const [scrape] = readYaml('ops/prometheus/prometheus.yml').scrape_configs;
    assert.match(scrape.job_name, /^holdfast/);
    assert.deepEqual(scrape.dns_sd_configs[0].names, ['node']);
    assert.equal(scrape.dns_sd_configs[0].port, METRICS_PORT);
    for (const service of Object.values(compose.services)) for (const port of service.ports ?? []) assert.match(port, /^127\.0\.0\.1:/);
  });

  it('gets its secrets made: all that it names, once, kept when made again', () => {
    const directory = tempDir();
    cpSync(path('ops/container/make-secrets'), join(directory, 'make-secrets'));
    const make = () => {
      const { status, output } = tool(join(directory, 'make-secrets'), []);
      assert.equal(status, 0, output);
      const names = readdirSync(join(directory, 'secrets'));
      return Object.fromEntries(names.sort().map((name) => [name, readFileSync(join(directory, 'secrets', name), 'utf8')]));
    };
    const first = make();
    assert.deepEqual(Object.keys(first), Object.values(compose.secrets).map(({ file }) => file.replace(/^secrets\//, '')).sort());
    assert.deepEqual(make(), first);
    assert.equal(statSync(join(directory, 'secrets')).mode & 0o777, 0o700);
    const passwords = Object.entries(first).filter(([name]) => !name.endsWith('.conf')).map(([, text]) => text);
    assert.equal(new Set(passwords).size, passwords.length);
    for (const password of passwords) assert.match(password, /^[0-9a-f]{64}$/);
    const conf = first['holdfast.conf'];
    assert.ok(conf.includes(first['postgres-password']) && conf.includes(first['redis-password']));
    assert.ok(first['redis.conf'].includes(first['redis-password']));
  });
});

describe('the compose file for Kafka', () => {
  const { kafka } = overlay.services;
  const brokers = /^kafka:\/\/(.+)$/.exec(overlay.services.node.environment.HOLDFAST_ORDER)[1].split(',');

  it('changes the node and adds a broker, with a health check that it waits for', () => {
    assert.deepEqual(Object.keys(overlay.services).sort(), ['kafka', 'node']);
    assert.equal(overlay.services.node.scale, '3');
    assert.deepEqual(overlay.services.node.depends_on, { kafka: { condition: 'service_healthy' } });
    assert.ok(kafka.healthcheck.test.length > 0);
    assert.match(kafka.image, /^apache\/kafka:\d/);
  });

  it('has a broker that listens, and says it does, where the nodes look for it', () => {
    const advertised = kafka.environment.KAFKA_ADVERTISED_LISTENERS.split(',').map((listener) => listener.split('://')[1]);
    assert.deepEqual(brokers, advertised);
    const protocols = new Map(kafka.environment.KAFKA_LISTENER_SECURITY_PROTOCOL_MAP.split(',').map((pair) => pair.split(':')));
    const listeners = kafka.environment.KAFKA_LISTENERS.split(',').map((listener) => listener.split('://'));
    for (const [name] of listeners) assert.ok(protocols.has(name), name);
    for (const broker of brokers) {
      const [host, port] = broker.split(':');
      assert.ok(host in overlay.services, host);
      assert.ok(listeners.some(([, address]) => address === `:${port}`), broker);
      assert.equal(kafka.healthcheck.test.at(-1), `127.0.0.1:${port}`);
    }
    const [, controllerPort] = /^1@localhost:(\d+)$/.exec(kafka.environment.KAFKA_CONTROLLER_QUORUM_VOTERS);
    const controller = listeners.find(([name]) => name === kafka.environment.KAFKA_CONTROLLER_LISTENER_NAMES);
    assert.equal(controller[1], `:${controllerPort}`);
    assert.ok(!kafka.ports, 'the broker has no password, so it is not for the outside');
  });

  it('agrees with the file it is laid over: networks, and a volume where its log is', () => {
    for (const network of kafka.networks) assert.ok(network in compose.networks, network);
    const mounts = new Map(kafka.volumes.map((volume) => volume.split(':').reverse()));
    const volume = mounts.get(kafka.environment.KAFKA_LOG_DIRS);
    assert.ok(volume in overlay.volumes && !(volume in compose.volumes), volume);
  });
});
