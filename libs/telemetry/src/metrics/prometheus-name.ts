import { METRICS, type MetricKey } from './table.ts';

/** Suffixes of units in Prometheus names; other units have none. */
const UNITS: Readonly<Record<string, string>> = { s: '_seconds', '1': '_ratio' };

/**
 * Returns the Prometheus name of a metric, as the exporter of the collector translates it. The name of a histogram is
 * returned without the suffixes `_bucket`, `_count` and `_sum`.
 */
export function prometheusName(key: MetricKey): string {
  const { name, unit, kind } = METRICS[key];
  const stem = name.replaceAll('.', '_') + (UNITS[unit] ?? '');
  return kind === 'counter' ? `${stem}_total` : stem;
}
