import type { StoreDialect } from '@writ/store';

/**
 * Maximum number of runs in one claim on a database that replicas share; equals the maximum number of runs that a
 * transaction can lock. A transaction with more runs is serialized with all other transactions.
 */
const MAX_RUNS = 32;

/**
 * On a database that replicas share, a replica with capacity for n more agents reads n times this number of rows, and
 * chooses among them at random.
 */
export const CLAIM_WINDOW = 4;

/**
 * Returns the rows that this process tries to claim next. Replicas that search at the same time find the same rows;
 * each replica therefore picks rows of at most {@link MAX_RUNS} runs at random, so that replicas rarely wait for each
 * other (SYS-5). On SQLite, which has a single process, the first rows of `found` are returned.
 */
export function claimBatch<T extends { readonly tenant: string }>(
  found: readonly T[],
  most: number,
  { dialect, runOf }: { readonly dialect: StoreDialect; readonly runOf: (row: T) => string },
): T[] {
  if (dialect === 'sqlite') return found.slice(0, most);
  const ofRuns = Map.groupBy(found, (row) => `${row.tenant}/${runOf(row)}`);
  const runs = [...ofRuns.values()];
  const chosen: T[] = [];
  for (let left = MAX_RUNS; left > 0 && runs.length > 0 && chosen.length < most; left -= 1) {
    const [rows = []] = runs.splice(Math.floor(Math.random() * runs.length), 1);
    chosen.push(...rows);
  }
  return chosen.slice(0, most);
}
