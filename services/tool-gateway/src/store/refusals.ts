import type { Selectable } from 'kysely';
import type { GatewayReader, GatewayTransaction } from './gateway-store.ts';
import type { RefusalsTable } from './schema.ts';

/** An attempt to call without a writ that fits, to be told to the supervisor. */
export type Refusal = Omit<Selectable<RefusalsTable>, 'position'>;

/** Most attempts that wait for the supervisor: whoever makes more of them has been told of enough. */
const MAX_PENDING = 10_000;

/**
 * Puts on record that somebody asked for what no writ of theirs orders (TG-1); the same attempt
 * again is on record once.
 * @returns false when so many wait for the supervisor that this one is not kept
 */
export async function insertRefusal(trx: GatewayTransaction, refusal: Refusal): Promise<boolean> {
  const { pending } = await trx
    .selectFrom('refusals')
    .select((eb) => eb.fn.countAll<number | bigint | string>().as('pending'))
    .executeTakeFirstOrThrow();
  if (Number(pending) >= MAX_PENDING) return false;
  await trx
    .insertInto('refusals')
    .values(refusal)
    .onConflict((conflict) => conflict.column('refusal_id').doNothing())
    .execute();
  return true;
}

/** The oldest attempts that the supervisor has not acknowledged. */
export async function pendingRefusals(db: GatewayReader, limit: number): Promise<Refusal[]> {
  const rows = await db
    .selectFrom('refusals')
    .selectAll()
    .orderBy('position')
    .limit(limit)
    .execute();
  return rows.map(({ position: _, ...refusal }) => refusal);
}

/** Forgets attempts that are in the supervisor's audit record by now (SV-8). */
export async function forgetRefusals(
  trx: GatewayTransaction,
  refusalIds: readonly string[],
): Promise<void> {
  await trx.deleteFrom('refusals').where('refusal_id', 'in', refusalIds).execute();
}
