import { join } from 'node:path';
import { loadYaml } from '@writ/config';
import { ATTR_ERROR_TYPE, ATTR_WRIT_DECISION } from '@writ/telemetry';
import { expect, it } from 'vitest';

interface Collector {
  readonly receivers: object;
  readonly processors: object & {
    readonly tail_sampling: { readonly policies: readonly { readonly type: string }[] };
  };
  readonly exporters: object;
  readonly service: {
    readonly pipelines: Readonly<
      Record<string, Record<'receivers' | 'processors' | 'exporters', string[]>>
    >;
  };
}

interface Prometheus {
  readonly scrape_configs: readonly {
    readonly static_configs: readonly { readonly targets: readonly string[] }[];
  }[];
}

const read = <T>(file: string): T =>
  loadYaml<T>(join(import.meta.dirname, file), { type: 'object' }).value;
const collector = read<Collector>('collector.yaml');

it('the collector receives all three signals, and declares every part of its pipelines', () => {
  const { pipelines } = collector.service;
  expect(Object.keys(pipelines)).toEqual(['traces', 'metrics', 'logs']);
  for (const pipeline of Object.values(pipelines)) {
    for (const kind of ['receivers', 'processors', 'exporters'] as const) {
      expect(Object.keys(collector[kind])).toEqual(expect.arrayContaining(pipeline[kind]));
    }
  }
});

it('the collector samples traces with errors, escalations and rejections by the span attributes that services set (SYS-1)', () => {
  const { policies } = collector.processors.tail_sampling;
  expect(policies).toEqual([
    expect.objectContaining({ status_code: { status_codes: ['ERROR'] } }),
    expect.objectContaining({
      string_attribute: { key: ATTR_WRIT_DECISION, values: ['escalate', 'block'] },
    }),
    expect.objectContaining({ type: 'ottl_condition' }),
    expect.objectContaining({ type: 'probabilistic' }),
  ]);
  expect(JSON.stringify(policies)).toContain(`attributes[\\"${ATTR_ERROR_TYPE}\\"] != nil`);
});

it('Prometheus scrapes the endpoint of the collector', () => {
  const { scrape_configs: jobs } = read<Prometheus>('prometheus.yaml');
  const { prometheus } = collector.exporters as { prometheus: { endpoint: string } };
  const port = prometheus.endpoint.split(':')[1];
  expect(jobs[0]?.static_configs[0]?.targets).toEqual([`otel-collector:${port}`]);
});
