import type {
  Attributes,
  Counter,
  Gauge,
  Histogram,
  Meter,
  ObservableGauge,
} from '@opentelemetry/api';
import { LabelCaps, type Labels } from './label-caps.ts';
import { METRICS, type MetricKey, type MetricsOfKind } from './table.ts';

/** One value of a gauge. */
export interface Observation {
  readonly value: number;
  readonly labels?: Labels;
}

/** One service's metrics (SYS-1); which there are says the table. Nothing here throws. */
export interface Metrics {
  /** Whether anybody takes them. Where false, callers need not even make the labels. */
  readonly enabled: boolean;
  /** Adds to a counter. */
  count(metric: MetricsOfKind<'counter'>, labels?: Labels, value?: number): void;
  /** Records a value of a histogram. */
  record(metric: MetricsOfKind<'histogram'>, value: number, labels?: Labels): void;
  /** Has `read` asked for a gauge's values before each export; a failure leaves them out that time. */
  observe(
    metric: MetricsOfKind<'gauge'>,
    read: () => Promise<readonly Observation[]> | readonly Observation[],
  ): void;
}

/** Takes nothing. */
export const NO_METRICS: Metrics = {
  enabled: false,
  count: () => undefined,
  record: () => undefined,
  observe: () => undefined,
};

/** Metrics that `meter` takes, each instrument made when it is first used. */
export function createMetrics(meter: Meter, caps = new LabelCaps()): Metrics {
  const made = new Map<MetricKey, Counter | Histogram | Gauge | ObservableGauge>();
  const once = <I extends Counter | Histogram | ObservableGauge>(
    key: MetricKey,
    make: (name: string, options: { description: string; unit: string }) => I,
  ): I => {
    const known = made.get(key);
    if (known !== undefined) return known as I;
    const { name, about, unit } = METRICS[key];
    const instrument = make(name, { description: about, unit });
    made.set(key, instrument);
    return instrument;
  };
  return {
    enabled: true,
    count: (key, labels = {}, value = 1) => {
      const counter = once(key, (name, options) => meter.createCounter(name, options));
      counter.add(value, caps.bound(labels) satisfies Attributes);
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
          for (const { value, labels = {} } of await read()) {
            result.observe(value, caps.bound(labels));
          }
        } catch {
          // A store that is away has no figures; that it is away is told elsewhere.
          return;
        }
      });
    },
  };
}
