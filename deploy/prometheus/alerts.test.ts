import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { METRICS, type MetricKey, prometheusName } from '@writ/telemetry';
import { describe, expect, it } from 'vitest';
import { parse } from 'yaml';

const FILE = join(import.meta.dirname, 'alerts.yaml');
/** The program that checks alert rules, in the Debian package prometheus. */
const PROMTOOL: string = 'promtool';
const HAS_PROMTOOL = spawnSync(PROMTOOL, ['--version']).status === 0;

interface Rule {
  readonly alert: string;
  readonly expr: string;
  readonly annotations: Readonly<Record<string, string>>;
}

const { groups } = parse(readFileSync(FILE, 'utf8')) as {
  readonly groups: readonly { readonly rules: readonly Rule[] }[];
};
const rules = groups.flatMap((group) => group.rules);

/** Label names by metric name; the name of a histogram ends in _count. */
const labelsByMetric = new Map<string, readonly string[]>();
for (const key of Object.keys(METRICS) as MetricKey[]) {
  const labels = METRICS[key].labels.map((label) => label.replaceAll('.', '_'));
  const name = prometheusName(key);
  labelsByMetric.set(METRICS[key].kind === 'histogram' ? `${name}_count` : name, labels);
}

describe('the alert rules', () => {
  it.each(rules)('$alert uses only existing metrics and their labels', (rule) => {
    const { expr, annotations } = rule;
    const names = expr.match(/\b[a-z_]+(?=\{)/g) ?? [];
    expect(names.length).toBeGreaterThan(0);
    for (const name of names) expect([...labelsByMetric.keys()]).toContain(name);
    const known = ['job', 'instance', ...names.flatMap((name) => labelsByMetric.get(name) ?? [])];
    const grouped = [...expr.matchAll(/by \(([^)]*)\)/g)].flatMap(([, list = '']) =>
      list.split(', '),
    );
    const matched = [...expr.matchAll(/(\w+)(?:=~|!=|=)"/g)].map(([, label = '']) => label);
    for (const label of [...grouped, ...matched]) expect(known).toContain(label);
    const shown = [
      ...Object.values(annotations)
        .join()
        .matchAll(/\$labels\.(\w+)/g),
    ];
    for (const [, label] of shown) expect(grouped).toContain(label);
    expect(annotations).toMatchObject({
      summary: expect.any(String),
      action: expect.any(String),
    });
  });

  it.skipIf(!HAS_PROMTOOL && process.env.WRIT_REQUIRE_SERVICES !== '1')(
    'are accepted by promtool',
    () => {
      const { status, stdout, stderr } = spawnSync(PROMTOOL, ['check', 'rules', FILE]);
      expect(`${stdout}${stderr}`).toContain(`SUCCESS: ${rules.length} rules found`);
      expect(status).toBe(0);
    },
  );
});
