import { METRICS, type MetricKey } from './table.ts';

/** What a unit becomes in a name; others are left out, as are those that only count things. */
const UNITS: Readonly<Record<string, string>> = { s: '_seconds', '1': '_ratio' };

/**
 * What a metric is called in Prometheus, as the collector's exporter translates it: of a histogram the
 * stem, to which `_bucket`, `_count` and `_sum` are added.
 */
export function prometheusName(key: MetricKey): string {
  const { name, unit, kind } = METRICS[key];
  const stem = name.replaceAll('.', '_') + (UNITS[unit] ?? '');
  return kind === 'counter' ? `${stem}_total` : stem;
}
