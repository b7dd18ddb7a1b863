// SPDX-License-Identifier: Apache-2.0
// A real Prometheus over a real server: it can read what the server says, every rule evaluates, a healthy server raises no
// alert, and the dashboard's numbers come out of it.

import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { cpSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';

import { send } from '../lib/client.mjs';
import { freePort, start, tempDir } from '../lib/server.mjs';
import { waitFor } from '../lib/wait.mjs';
import { World } from '../lib/world.mjs';
import { alerts, path, read } from './lib/files.mjs';

const SCRAPES_MIN = 4;

describe('prometheus', () => {
  let server;
  let metricsPort;
  let prometheus;
  let url;
  let output = '';

  before(async () => {
    metricsPort = await freePort();
    server = await start({ args: ['--metrics-listen', `127.0.0.1:${metricsPort}`] });
    const directory = tempDir();
    cpSync(path('ops/prometheus/alerts.yml'), join(directory, 'alerts.yml'));
    // The sample as it is, but for where the node is and how often it is asked.
    const sample = read('ops/prometheus/prometheus.yml');
    const config = sample
      .replaceAll('_interval: 15s', '_interval: 1s')
      .replace(/    dns_sd_configs:\n(?:      .*\n)+/, `    static_configs:\n      - targets: ["127.0.0.1:${metricsPort}"]\n`);
    assert.notEqual(config, sample);
    writeFileSync(join(directory, 'prometheus.yml'), config);
    const port = await freePort();
    url = `http://127.0.0.1:${port}`;
    prometheus = spawn('prometheus', [`--config.file=${directory}/prometheus.yml`, `--storage.tsdb.path=${directory}/data`, `--web.listen-address=127.0.0.1:${port}`],
      { stdio: ['ignore', 'pipe', 'pipe'] });
    prometheus.on('error', (error) => (output += error.message));
    for (const stream of [prometheus.stdout, prometheus.stderr]) stream.setEncoding('utf8').on('data', (text) => (output += text));
    process.on('exit', () => prometheus.kill('SIGKILL'));
    await waitFor('Prometheus to be ready', async () => {
      assert.equal(prometheus.exitCode, null, output);
      return (await send(`${url}/-/ready`).catch(() => null))?.status === 200;
    });
  });

  after(async () => {
    const ended = new Promise((done) => prometheus.on('close', done));
    prometheus.kill('SIGTERM');
    await ended;
    await server.stop();
  });

  const ask = async (expression) => {
    const { status, body } = await send(`${url}/api/v1/query?query=${encodeURIComponent(expression)}`);
    assert.equal(status, 200, expression);
    return body.data.result;
  };

  it('reads the node, evaluates every alert, and none is raised', async () => {
    const event = await (await new World(server).organization()).event();
    await event.hold(event.organization.buyer(), event.seats[0]);
    const scrapes = () => ask(`count_over_time(holdfast_start_time_seconds[5m]) >= ${SCRAPES_MIN}`);
    await waitFor('some scrapes', async () => (await scrapes()).length === 1);
    const rules = await waitFor('every rule to be evaluated', async () => {
      const { body } = await send(`${url}/api/v1/rules`);
      const all = body.data.groups.flatMap((group) => group.rules);
      return all.every((rule) => rule.health !== 'unknown') ? all : null;
    });
    assert.deepEqual(rules.map((rule) => rule.name).sort(), alerts().map((alert) => alert.alert).sort());
    for (const rule of rules) {
      assert.equal(rule.health, 'ok', `${rule.name}: ${rule.lastError}`);
      assert.deepEqual(rule.alerts, [], `${rule.name} on a healthy server`);
    }
  });

  it('answers every panel of the dashboard', async () => {
    const dashboard = JSON.parse(readFileSync(path('ops/grafana/holdfast.json'), 'utf8'));
    for (const panel of dashboard.panels.filter((one) => one.type !== 'row')) {
      for (const { expr } of panel.targets) {
        const rows = await ask(expr.replaceAll('$__rate_interval', '1m').replaceAll('$job', 'holdfast').replaceAll('$instance', '.*'));
        // A reaper that has not swept yet has no age; everything else is there from the start.
        if (!expr.includes('reaper_last_run')) assert.ok(rows.length > 0, `${panel.title}: ${expr} has no data`);
      }
    }
  });
});
