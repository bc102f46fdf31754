import { afterCommit } from '@writ/store';
import type { Metrics, Telemetry } from '@writ/telemetry';

/** Counts when a transaction is committed. */
export type CountAtCommit = (trx: object, ...counted: Parameters<Metrics['count']>) => void;

/**
 * Returns a function that counts what a transaction does: nothing when it is rolled back, and once when it is then
 * repeated.
 */
export function countAtCommit({ metrics }: Telemetry): CountAtCommit {
  return (trx, ...counted) => {
    if (metrics.enabled) afterCommit(trx, () => metrics.count(...counted));
  };
}
