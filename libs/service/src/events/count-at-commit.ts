import { afterCommit } from '@writ/store';
import type { Metrics, Telemetry } from '@writ/telemetry';

/** Counts when a transaction is durable. */
export type CountAtCommit = (trx: object, ...counted: Parameters<Metrics['count']>) => void;

/**
 * Returns how to count what a transaction does: nothing is counted when it is undone, and once when it is then
 * repeated.
 */
export function countAtCommit({ metrics }: Telemetry): CountAtCommit {
  return (trx, ...counted) => {
    if (metrics.enabled) afterCommit(trx, () => metrics.count(...counted));
  };
}
