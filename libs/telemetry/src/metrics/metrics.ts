import type {
  Attributes,
  Counter,
  Gauge,
  Histogram,
  Meter,
  ObservableGauge,
} from '@opentelemetry/api';
import { LabelCaps, type Labels } from './label-caps.ts';
import { METRICS, type MetricKey, type MetricRow, type MetricsOfKind } from './table.ts';

/** One value of a gauge. */
export interface Observation {
  readonly value: number;
  readonly labels?: Labels;
}

/** The metrics of one service (SYS-1), as listed in the table. Its methods never throw. */
export interface Metrics {
  /** Whether metrics are exported. When false, callers need not build labels. */
  readonly enabled: boolean;
  /** Adds to a counter. */
  count(metric: MetricsOfKind<'counter'>, labels?: Labels, value?: number): void;
  /** Records a value of a histogram. */
  record(metric: MetricsOfKind<'histogram'>, value: number, labels?: Labels): void;
  /**
   * Registers `read`, which is called at every export and returns the values of a gauge. An OTLP export omits label
   * sets that `read` does not return, and the whole gauge when `read` fails. Counts whose labels the cap makes equal
   * are added up.
   */
  observe(
    metric: MetricsOfKind<'gauge'>,
    read: () => Promise<readonly Observation[]> | readonly Observation[],
  ): void;
}

const TENANT = 'writ.tenant';
/** Maximum number of tenants with series initialized to 0; the label cap combines further tenants in one series. */
const MAX_TENANTS = 100;

/**
 * Returns the series that a service initializes to 0: the series of `tenant`, or, when `tenant` is undefined, the
 * series without a tenant label.
 */
function zeroSeries(service: string, tenant?: string): [MetricKey, Labels][] {
  return (Object.keys(METRICS) as MetricKey[]).flatMap((key) => {
    const row: MetricRow = METRICS[key];
    const isOfTenant = row.labels.includes(TENANT);
    if (row.zero === undefined || row.from !== service || isOfTenant !== (tenant !== undefined))
      return [];
    let series: Labels[] = [tenant === undefined ? {} : { [TENANT]: tenant }];
    for (const [label, values] of Object.entries(row.zero))
      series = series.flatMap((labels) => values.map((value) => ({ ...labels, [label]: value })));
    return series.map((labels): [MetricKey, Labels] => [key, labels]);
  });
}

/** Returns whether values of the metric with equal labels can be added: not times, ratios or flags. */
function isCount({ unit }: MetricRow): boolean {
  return unit === 'By' || unit.startsWith('{');
}

/** Adds up the values with equal labels, of which the SDK would export only the last. */
function addUp<L extends Labels>(observations: readonly { value: number; labels: L }[]) {
  const sums = new Map<string, { value: number; readonly labels: L }>();
  for (const { value, labels } of observations) {
    const key = JSON.stringify(Object.entries(labels).sort());
    const sum = sums.get(key);
    if (sum === undefined) sums.set(key, { value, labels });
    else sum.value += value;
  }
  return sums.values();
}

/** Metrics that are not exported. */
export const NO_METRICS: Metrics = {
  enabled: false,
  count: () => undefined,
  record: () => undefined,
  observe: () => undefined,
};

/**
 * Creates the metrics of a service on `meter`. Every instrument is created on first use; rare counters start at 0 (see
 * `zero` in the table).
 */
export function createMetrics(meter: Meter, service: string, caps = new LabelCaps()): Metrics {
  const instruments = new Map<MetricKey, Counter | Histogram | Gauge | ObservableGauge>();
  const once = <I extends Counter | Histogram | ObservableGauge>(
    key: MetricKey,
    create: (name: string, options: { description: string; unit: string }) => I,
  ): I => {
    const known = instruments.get(key);
    if (known !== undefined) return known as I;
    const { name, about, unit } = METRICS[key];
    const instrument = create(name, { description: about, unit });
    instruments.set(key, instrument);
    return instrument;
  };
  const add = (key: MetricKey, labels: Labels, value: number): void => {
    const counter = once(key, (name, options) => meter.createCounter(name, options));
    counter.add(value, caps.bound(labels) satisfies Attributes);
  };
  const tenants = new Set<string>();
  const addTenant = (tenant: string | undefined): void => {
    if (tenant === undefined || tenants.has(tenant) || tenants.size >= MAX_TENANTS) return;
    tenants.add(tenant);
    for (const [key, labels] of zeroSeries(service, tenant)) add(key, labels, 0);
  };
  for (const [key, labels] of zeroSeries(service)) add(key, labels, 0);
  return {
    enabled: true,
    count: (key, labels = {}, value = 1) => {
      addTenant(labels[TENANT]);
      add(key, labels, value);
    },
    record: (key, value, labels = {}) => {
      const { buckets } = METRICS[key];
      const histogram = once(key, (name, options) =>
        meter.createHistogram(name, {
          ...options,
          advice: { explicitBucketBoundaries: [...buckets] },
        }),
      );
      histogram.record(value, caps.bound(labels));
    },
    observe: (key, read) => {
      const gauge = once(key, (name, options) => meter.createObservableGauge(name, options));
      gauge.addCallback(async (result) => {
        try {
          const bounded = (await read()).map(({ value, labels = {} }) => ({
            value,
            labels: caps.bound(labels),
          }));
          const values = isCount(METRICS[key]) ? addUp(bounded) : bounded;
          for (const { value, labels } of values) result.observe(value, labels);
        } catch {
          // An unavailable store is reported by its own metrics and logs.
          return;
        }
      });
    },
  };
}
