import type { WorkerTransaction } from './worker-store.ts';

/** A rate limit that all agents of a tenant that name it share. */
export interface SharedLimit {
  readonly tenant: string;
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
  { tenant, name, calls, perMs }: SharedLimit,
  now: Date,
): Promise<Date> {
  // The row is locked until the commit, so that concurrent workers take turns in order.
  const { turns: turn } = await trx
    .insertInto('rate_limits')
    .values({ tenant, name, turns: 1n })
    .onConflict((conflict) =>
      conflict
        .columns(['tenant', 'name'])
        .doUpdateSet((eb) => ({ turns: eb('rate_limits.turns', '+', 1n) })),
    )
    .returning('turns')
    .executeTakeFirstOrThrow();
  const before = turn - BigInt(calls);
  const earlier = await trx
    .selectFrom('rate_turns')
    .select('at')
    .where('tenant', '=', tenant)
    .where('name', '=', name)
    .where('turn', '=', before)
    .executeTakeFirst();
  const at = new Date(Math.max(now.getTime(), (earlier?.at.getTime() ?? 0) + perMs));
  const time = earlier === undefined ? now : at;
  await trx.insertInto('rate_turns').values({ tenant, name, turn, at: time }).execute();
  await trx
    .deleteFrom('rate_turns')
    .where('tenant', '=', tenant)
    .where('name', '=', name)
    .where('turn', '<=', before)
    .execute();
  return time;
}
