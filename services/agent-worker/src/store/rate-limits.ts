import type { RunKey } from '@writ/kernel';
import { prepareWrite } from '@writ/store';
import { runColumns } from './keys.ts';
import type { WorkerReader, WorkerTransaction } from './worker-store.ts';

/** A rate limit, identified by its name within a run or, if `runId` is empty, within the tenant. */
export interface SharedLimit {
  readonly tenant: string;
  /** The run whose agents share the limit; empty when agents of several runs share it. */
  readonly runId: string;
  readonly name: string;
  readonly calls: number;
  readonly perMs: number;
}

/**
 * Acquires the next permit of a limit and returns the time from which the permit is valid: at least `perMs` after the
 * permit that is `calls` positions earlier, so that at most `calls` permits become valid in any period of `perMs`
 * (AG-9).
 */
export async function acquirePermit(
  trx: WorkerTransaction,
  { tenant, runId, name, calls, perMs }: SharedLimit,
  now: Date,
): Promise<Date> {
  const limit = { tenant, run_id: runId, name };
  // The row is locked until the commit, so that concurrent workers acquire permits one after the other.
  const { turns: turn } = await trx
    .insertInto('rate_limits')
    .values({ ...limit, turns: 1n })
    .onConflict((conflict) =>
      conflict
        .columns(['tenant', 'run_id', 'name'])
        .doUpdateSet((eb) => ({ turns: eb('rate_limits.turns', '+', 1n) })),
    )
    .returning('turns')
    .executeTakeFirstOrThrow();
  const before = turn - BigInt(calls);
  const earlier = await trx
    .selectFrom('rate_turns')
    .select('at')
    .where((eb) => eb.and({ ...limit, turn: before }))
    .executeTakeFirst();
  const at = new Date(Math.max(now.getTime(), (earlier?.at.getTime() ?? 0) + perMs));
  const time = earlier === undefined ? now : at;
  await trx
    .insertInto('rate_turns')
    .values({ ...limit, turn, at: time })
    .execute();
  await trx
    .deleteFrom('rate_turns')
    .where((eb) => eb.and(limit))
    .where('turn', '<=', before)
    .execute();
  return time;
}

/**
 * Deletes the limits that only agents of this run share. Must be called when the root agent ends, and when the whole
 * run is cancelled, because child agents may have acquired permits after the root ended.
 */
export async function deleteLimits(trx: WorkerTransaction, run: RunKey): Promise<void> {
  await deleteLimitRows(trx, run);
  await deleteTurnRows(trx, run);
}

const deleteLimitRows = prepareWrite((db: WorkerReader, { tenant, runId }: RunKey) =>
  db.deleteFrom('rate_limits').where((eb) => eb.and(runColumns({ tenant, runId }))),
);

const deleteTurnRows = prepareWrite((db: WorkerReader, { tenant, runId }: RunKey) =>
  db.deleteFrom('rate_turns').where((eb) => eb.and(runColumns({ tenant, runId }))),
);
