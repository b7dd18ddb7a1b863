// SPDX-License-Identifier: Apache-2.0
// The dashboard: a document Grafana can load, made of expressions that Prometheus can read and that ask for metrics that
// exist.

import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';

import { send } from '../lib/client.mjs';
import { start, tempDir } from '../lib/server.mjs';
import { path, read, readYaml, tool } from './lib/files.mjs';
import { complaints, readMetrics } from './lib/metrics.mjs';

const GRID_WIDTH = 24;
const dashboard = JSON.parse(read('ops/grafana/holdfast.json'));
const panels = dashboard.panels.filter((panel) => panel.type !== 'row');
const expressions = panels.flatMap((panel) => panel.targets.map((target) => ({ title: panel.title, ...target })));
const plain = (expression) =>
  expression.replaceAll('$__rate_interval', '1m').replaceAll('$job', 'holdfast').replaceAll('$instance', '.*');

describe('the dashboard', () => {
  let server;
  let series;

  before(async () => {
    server = await start();
    series = readMetrics((await send(`${server.url}/metrics`)).text);
  });
  after(() => server.stop());

  it('is sound: ids once, panels within the grid and not over each other', () => {
    assert.ok(dashboard.uid && dashboard.title && dashboard.schemaVersion >= 36);
    const ids = dashboard.panels.map((panel) => panel.id);
    assert.equal(new Set(ids).size, ids.length);
    const taken = new Set();
    for (const { title, gridPos } of dashboard.panels) {
      assert.ok(gridPos.x >= 0 && gridPos.w > 0 && gridPos.h > 0 && gridPos.x + gridPos.w <= GRID_WIDTH, title);
      for (let x = gridPos.x; x < gridPos.x + gridPos.w; x++) {
        for (let y = gridPos.y; y < gridPos.y + gridPos.h; y++) {
          assert.ok(!taken.has(`${x},${y}`), `${title} covers another panel`);
          taken.add(`${x},${y}`);
        }
      }
    }
  });

  it('has something to show in every panel, from the data source that was chosen', () => {
    for (const panel of panels) {
      assert.ok(panel.title, 'a panel without a title');
      assert.ok(panel.targets.length > 0, panel.title);
      assert.equal(new Set(panel.targets.map((target) => target.refId)).size, panel.targets.length, panel.title);
      for (const { datasource } of [panel, ...panel.targets]) assert.deepEqual(datasource, { type: 'prometheus', uid: '${datasource}' }, panel.title);
    }
  });

  it('uses only variables that it has', () => {
    const known = new Set(dashboard.templating.list.map((variable) => variable.name));
    for (const name of ['datasource', 'job', 'instance']) assert.ok(known.has(name), name);
    for (const { title, expr } of expressions) {
      for (const [, name] of expr.matchAll(/\$\{?([a-z]\w*)/g)) assert.ok(known.has(name), `${title}: $${name}`);
    }
  });

  it('asks only for metrics and labels that a server has', () => {
    const found = expressions.flatMap(({ title, expr }) => complaints(plain(expr).replaceAll('instance=~".*"', ''), series).map((why) => `${title}: ${why}`));
    assert.deepEqual(found, []);
    for (const { title, legendFormat, expr } of expressions) {
      for (const [, label] of legendFormat.matchAll(/\{\{(\w+)\}\}/g)) {
        assert.match(expr, new RegExp(`by \\([^)]*\\b${label}\\b`), `${title}: the legend shows ${label}`);
      }
    }
  });

  it('is made of expressions that Prometheus can read', () => {
    const file = join(tempDir(), 'panels.yml');
    const rules = expressions.map(({ expr }, index) => ({ record: `panel:${index}`, expr: plain(expr) }));
    writeFileSync(file, JSON.stringify({ groups: [{ name: 'panels', rules }] })); // JSON is YAML
    const { status, output } = tool('promtool', ['check', 'rules', file]);
    assert.equal(status, 0, output);
    assert.match(output, new RegExp(`${expressions.length} rules found`));
  });

  it('shows what an operator was promised', () => {
    const shown = expressions.map(({ expr }) => expr).join('\n');
    for (const name of ['hold_attempts_total', 'hold_success_total', 'hold_conflict_total', 'tier_decisions_total', 'breaker_state', 'fallback_total',
      'warm_round_seconds', 'batch_size', 'commit_seconds', 'command_seconds', 'queue_depth', 'reaper_runs_total', 'releases_total', 'holds_active',
      'holds_overdue', 'invalidation_seconds', 'feed_changes_total', 'deliveries_total', 'delivery_backlog_seconds', 'payment_seconds',
      'stream_readers', 'order_lag', 'order_partitions', 'order_pending', 'order_pending_answers_total', 'order_sent_total', 'order_taken_total',
      'order_redelivered_total', 'order_fenced_total', 'order_late_total', 'order_dead_letters_total', 'order_produce_seconds',
      'order_commit_seconds', 'order_round_seconds', 'broker_up', 'broker_errors_total', 'broker_partitions_total']) {
      assert.ok(shown.includes(`holdfast_${name}`), name);
    }
  });

  it('is what the provisioning files bring into Grafana', () => {
    const compose = readYaml('ops/container/compose.yaml');
    const [provider] = readYaml('ops/grafana/provisioning/dashboards/holdfast.yml').providers;
    const [source] = readYaml('ops/grafana/provisioning/datasources/prometheus.yml').datasources;
    assert.equal(source.type, 'prometheus');
    const { hostname, port } = new URL(source.url);
    assert.ok(compose.services[hostname].ports.some((one) => one.endsWith(`:${port}`)), source.url);
    const mounts = compose.services.grafana.volumes.map((volume) => volume.split(':'));
    assert.ok(mounts.some(([from, to]) => from === '../grafana/holdfast.json' && to === `${provider.options.path}/holdfast.json`));
    assert.ok(mounts.some(([from]) => path(`ops/container/${from}`) === path('ops/grafana/provisioning')));
  });
});
