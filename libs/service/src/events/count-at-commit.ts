import { afterCommit } from '@writ/store';
import type { Metrics, Telemetry } from '@writ/telemetry';

/** Increments a metric once the transaction is committed. */
export type CountAtCommit = (trx: object, ...counted: Parameters<Metrics['count']>) => void;

/**
 * Returns a function that increments a metric when the transaction commits, so that a transaction that is rolled back
 * and retried is counted once.
 */
export function countAtCommit({ metrics }: Telemetry): CountAtCommit {
  return (trx, ...counted) => {
    if (metrics.enabled) afterCommit(trx, () => metrics.count(...counted));
  };
}
