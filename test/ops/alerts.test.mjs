// SPDX-License-Identifier: Apache-2.0
// The alerts: promtool finds them sound and sees each one fire and stay quiet, they ask for metrics that exist, and the
// runbook has a heading for each.

import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';

import { send } from '../lib/client.mjs';
import { start } from '../lib/server.mjs';
import { alerts, anchorsOf, path, read, readYaml, tool } from './lib/files.mjs';
import { complaints, readMetrics } from './lib/metrics.mjs';

const SEVERITIES = ['critical', 'warning', 'info'];
// By name, so that none is lost in a change.
const PROMISED = ['HoldfastFallback', 'HoldfastSuccessRateLow', 'HoldfastConflicts', 'HoldfastReleaseFailures', 'HoldfastInvalidationSlow',
  'HoldfastOrphanedHolds', 'HoldfastDoubleReleases', 'HoldfastRetriesExhausted', 'HoldfastExtensionFailures', 'HoldfastLockTimeouts',
  'HoldfastReaperSilent', 'HoldfastBrokerDown', 'HoldfastCommandsNotStored', 'HoldfastPartitionsUnowned', 'HoldfastOrderLag', 'HoldfastPendingAnswers',
  'HoldfastLateReserves', 'HoldfastOrderRetries', 'HoldfastRebalancing', 'HoldfastCommandsFenced', 'HoldfastCommandsDead', 'HoldfastProduceSlow',
  'HoldfastRoundTripSlow'];

describe('promtool', () => {
  it('finds the rules sound', () => {
    const { status, output } = tool('promtool', ['check', 'rules', path('ops/prometheus/alerts.yml')]);
    assert.equal(status, 0, output);
  });

  it('finds the sample configuration sound, with its rules', () => {
    const { status, output } = tool('promtool', ['check', 'config', path('ops/prometheus/prometheus.yml')]);
    assert.equal(status, 0, output);
    assert.match(output, /1 rule files found/);
  });

  it('sees every alert fire above its threshold and stay quiet below it', () => {
    const { status, output } = tool('promtool', ['test', 'rules', path('ops/prometheus/alerts.test.yml')]);
    assert.equal(status, 0, output);
  });
});

describe('the tests of the alerts', () => {
  const groups = readYaml('ops/prometheus/alerts.test.yml').tests;
  const labelsOf = (text) => Object.fromEntries([...text.matchAll(/(\w+)="([^"]*)"/g)].map(([, key, value]) => [key, value]));

  it('are one group for each alert, and no other', () => {
    assert.deepEqual(groups.map((group) => group.name), alerts().map((alert) => alert.alert));
  });

  for (const alert of alerts()) {
    it(`${alert.alert}: fires for holdfast-over, is not even pending for holdfast-under${alert.for ? ', and waits first' : ''}`, () => {
      const group = groups.find((one) => one.name === alert.alert);
      const jobs = new Set(group.input_series.map(({ series }) => labelsOf(series).job));
      assert.ok(jobs.has('holdfast-over') && jobs.has('holdfast-under'), [...jobs].join());
      const last = group.promql_expr_test.at(-1);
      assert.equal(last.expr, `ALERTS{alertname="${alert.alert}"}`);
      assert.ok(last.exp_samples.length > 0);
      for (const { labels, value } of last.exp_samples) {
        const { job, alertstate, severity } = labelsOf(labels);
        assert.deepEqual({ job, alertstate, severity, value }, { job: 'holdfast-over', alertstate: 'firing', severity: alert.labels.severity, value: '1' });
      }
      if (alert.for) {
        assert.equal(group.promql_expr_test.length, 2);
        assert.equal(group.promql_expr_test[0].expr, `ALERTS{alertname="${alert.alert}",alertstate="firing"}`);
        assert.deepEqual(group.promql_expr_test[0].exp_samples, []);
      }
      // What its texts name is what the alert carries.
      const carried = labelsOf(last.exp_samples[0].labels);
      for (const [, label] of Object.values(alert.annotations).join(' ').matchAll(/\$labels\.(\w+)/g)) {
        assert.ok(label in carried, `its text shows ${label}, which it does not have`);
      }
    });
  }
});

describe('alerts', () => {
  let server;
  let series;

  before(async () => {
    server = await start();
    series = readMetrics((await send(`${server.url}/metrics`)).text);
  });
  after(() => server.stop());

  it('are all there', () => {
    const names = alerts().map((alert) => alert.alert);
    assert.equal(new Set(names).size, names.length);
    for (const name of PROMISED) assert.ok(names.includes(name), name);
  });

  it('ask only for metrics and labels that a server has', () => {
    assert.ok(series.size > 50, 'the metrics were read');
    const found = alerts().flatMap((alert) => complaints(alert.expr, series).map((complaint) => `${alert.alert}: ${complaint}`));
    assert.deepEqual(found, []);
  });

  it('say how bad it is, what it is and what to look at', () => {
    for (const { alert, labels, annotations } of alerts()) {
      assert.ok(SEVERITIES.includes(labels.severity), alert);
      assert.ok(annotations.summary.length > 10 && annotations.summary.length < 120, alert);
      assert.match(annotations.description, /[Ll]ook /, `${alert} does not say what to look at`);
    }
  });

  it('name metrics in their texts that exist', () => {
    const known = new Set([...series.keys()].flatMap((name) => [name, name.replace(/_(bucket|sum|count)$/, '')]));
    for (const { alert, annotations } of alerts()) {
      for (const [name] of annotations.description.matchAll(/holdfast_\w+/g)) assert.ok(known.has(name), `${alert}: ${name}`);
    }
  });

  it('each have a heading in the runbook, and the runbook has no other', () => {
    const page = read('docs/operations.md');
    const anchors = anchorsOf(page);
    for (const { alert, annotations } of alerts()) {
      const [file, anchor] = annotations.runbook_url.split('#');
      assert.equal(file, 'docs/operations.md');
      assert.equal(anchor, alert.toLowerCase());
      assert.ok(anchors.has(anchor), `docs/operations.md has no heading ${alert}`);
    }
    const headings = [...page.matchAll(/^#+ (Holdfast[A-Z]\w+)$/gm)].map(([, title]) => title);
    assert.deepEqual(headings.filter((title) => !alerts().some(({ alert }) => alert === title)), []);
  });
});
