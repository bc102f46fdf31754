import type { RunKey } from '@writ/kernel';
import { prepareWrite } from '@writ/store';
import { runColumns } from './keys.ts';
import type { WorkerReader, WorkerTransaction } from './worker-store.ts';

/** A rate limit that all agents of a run or of a tenant that name it share. */
export interface SharedLimit {
  readonly tenant: string;
  /** The run whose agents share it; empty when agents of several runs do. */
  readonly runId: string;
  readonly name: string;
  readonly calls: number;
  readonly perMs: number;
}

/**
 * Takes the next turn of a limit and returns its time: at least `perMs` after the turn that is
 * `calls` before it, so that no period of `perMs` has more than `calls` turns (AG-9).
 */
export async function takeTurn(
  trx: WorkerTransaction,
  { tenant, runId, name, calls, perMs }: SharedLimit,
  now: Date,
): Promise<Date> {
  const limit = { tenant, run_id: runId, name };
  // The row is locked until the commit, so that concurrent workers take turns in order.
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

/** Deletes the limits that only agents of this run share; to be called at its end. */
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
