import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { METRICS, type MetricKey, prometheusName } from '@writ/telemetry';
import { describe, expect, it } from 'vitest';

const FOLDER = import.meta.dirname;
/** Labels that the collector sets from the resource, or that Prometheus sets. */
const ALWAYS = ['job', 'instance', 'le'];

interface Dashboard {
  readonly uid: string;
  readonly panels: readonly {
    readonly title: string;
    readonly targets?: readonly { readonly expr: string; readonly legendFormat: string }[];
  }[];
  readonly templating: {
    readonly list: readonly { readonly name: string; readonly query: string | { query: string } }[];
  };
}

/** Labels by the name of the metric in Prometheus. */
const series = new Map<string, readonly string[]>();
for (const key of Object.keys(METRICS) as MetricKey[]) {
  const labels = METRICS[key].labels.map((label) => label.replaceAll('.', '_'));
  const name = prometheusName(key);
  const names =
    METRICS[key].kind === 'histogram' ? [`${name}_bucket`, `${name}_count`, `${name}_sum`] : [name];
  for (const each of names) series.set(each, labels);
}

const files = readdirSync(FOLDER).filter((name) => name.endsWith('.json'));
const dashboards = files.map((name) => ({
  name,
  dashboard: JSON.parse(readFileSync(join(FOLDER, name), 'utf8')) as Dashboard,
}));

const metricsIn = (expr: string) => expr.match(/\b(?:writ|rpc|gen_ai|nodejs)_\w+(?=[{[])/g) ?? [];
const queriesOf = ({ panels, templating }: Dashboard) => [
  ...panels.flatMap(({ targets = [] }) => targets.map(({ expr }) => expr)),
  ...templating.list.map(({ query }) => (typeof query === 'string' ? '' : `${query.query}`)),
];

describe.each(dashboards)('the dashboard $name', ({ dashboard }) => {
  it('queries only existing metrics (SYS-1)', () => {
    for (const query of queriesOf(dashboard)) {
      const asked = /^label_values\((\w+),/.exec(query)?.slice(1) ?? metricsIn(query);
      for (const name of asked) expect([...series.keys()], query).toContain(name);
    }
    const exprs = dashboard.panels.flatMap(({ targets = [] }) => targets);
    for (const { expr } of exprs) expect(metricsIn(expr), expr).not.toEqual([]);
  });

  it('groups only by labels of its metrics', () => {
    for (const { targets = [] } of dashboard.panels) {
      for (const { expr, legendFormat } of targets) {
        const known = [...ALWAYS, ...metricsIn(expr).flatMap((name) => series.get(name) ?? [])];
        const grouped = [...expr.matchAll(/by \(([^)]*)\)/g)].flatMap(([, list = '']) =>
          list.split(',').map((label) => label.trim()),
        );
        const matched = [...expr.matchAll(/(\w+)(?:=~|!=|=)"/g)].map(([, label = '']) => label);
        const shown = [...legendFormat.matchAll(/\{\{(\w+)\}\}/g)].map(([, label = '']) => label);
        for (const label of [...grouped, ...matched, ...shown])
          expect(known, expr).toContain(label);
        for (const label of shown) expect(grouped, expr).toContain(label);
      }
    }
  });
});

it('every metric is on a dashboard, and every dashboard has a unique uid (SYS-1)', () => {
  const shown = new Set(
    dashboards.flatMap(({ dashboard }) => queriesOf(dashboard).flatMap(metricsIn)),
  );
  const missing = (Object.keys(METRICS) as MetricKey[]).filter(
    (key) => !['', '_bucket', '_count', '_sum'].some((end) => shown.has(prometheusName(key) + end)),
  );
  expect(missing).toEqual([]);
  expect(new Set(dashboards.map(({ dashboard }) => dashboard.uid)).size).toBe(files.length);
});
