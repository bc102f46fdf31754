import type { Migration } from 'kysely/migration';
import type { WorkerTransaction } from './worker-store.ts';

/** The number of turns that a shared rate limit has given. */
export interface RateLimitsTable {
  tenant: string;
  name: string;
  turns: bigint;
}

/** The latest turns of a rate limit, as many as it allows in one period. */
export interface RateTurnsTable {
  tenant: string;
  name: string;
  /** From 1. */
  turn: bigint;
  at: Date;
}

/** A rate limit that all agents of a tenant that name it share. */
export interface SharedLimit {
  readonly tenant: string;
  readonly name: string;
  readonly calls: number;
  readonly perMs: number;
}

/** The turns of shared rate limits (AG-9). */
export const rateLimitTables: Migration = {
  async up(db) {
    await db.schema
      .createTable('rate_limits')
      .addColumn('tenant', 'text', (column) => column.notNull())
      .addColumn('name', 'text', (column) => column.notNull())
      .addColumn('turns', 'bigint', (column) => column.notNull())
      .addPrimaryKeyConstraint('rate_limits_key', ['tenant', 'name'])
      .execute();
    await db.schema
      .createTable('rate_turns')
      .addColumn('tenant', 'text', (column) => column.notNull())
      .addColumn('name', 'text', (column) => column.notNull())
      .addColumn('turn', 'bigint', (column) => column.notNull())
      .addColumn('at', 'timestamptz', (column) => column.notNull())
      .addPrimaryKeyConstraint('rate_turns_key', ['tenant', 'name', 'turn'])
      .execute();
  },
};

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
