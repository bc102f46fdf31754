import type { Selectable } from 'kysely';
import type { GatewayReader, GatewayTransaction } from './gateway-store.ts';
import type { RefusalsTable } from './schema.ts';

/** A call that was rejected because of its writ (invalid, expired, or for another call); reported to the supervisor. */
export type Refusal = Omit<Selectable<RefusalsTable>, 'position'>;

/** Largest number of refusals kept until the supervisor acknowledges them. */
const MAX_PENDING = 10_000;
/** Maximum number of pending refusals for each tenant, so that one tenant cannot fill the log for the others. */
const MAX_PENDING_OF_TENANT = 2_000;

/** Maximum length of {@link Refusal.presented_by}, as in RefusedAttempt. */
const MAX_PRESENTED_BY = 128;

/** A count, as the drivers of the databases return it. */
type Count = number | bigint | string;

/**
 * Records a call without a matching writ (TG-1); does nothing if the attempt is already recorded.
 * @returns false when the log is full, for the tenant or as a whole, and the attempt was not recorded
 */
export async function insertRefusal(trx: GatewayTransaction, refusal: Refusal): Promise<boolean> {
  const { pending, of_tenant } = await trx
    .selectFrom('refusals')
    .select(({ fn }) => [
      fn.countAll<Count>().as('pending'),
      fn.countAll<Count>().filterWhere('tenant', '=', refusal.tenant).as('of_tenant'),
    ])
    .executeTakeFirstOrThrow();
  if (Number(pending) >= MAX_PENDING || Number(of_tenant) >= MAX_PENDING_OF_TENANT) return false;
  await trx
    .insertInto('refusals')
    .values(refusal)
    .onConflict((conflict) => conflict.column('refusal_id').doNothing())
    .execute();
  return true;
}

/**
 * Returns the name of a replica as a refusal may contain it: at most 128 characters of printable ASCII, because the
 * supervisor rejects a report that contains a longer name (BD-1).
 */
export function presentedBy(replica: string): string {
  return replica.slice(0, MAX_PRESENTED_BY).replaceAll(/[^\x20-\x7e]/g, '?');
}

/** The oldest refusals that the supervisor has not acknowledged. */
export async function pendingRefusals(db: GatewayReader, limit: number): Promise<Refusal[]> {
  const rows = await db
    .selectFrom('refusals')
    .selectAll()
    .orderBy('position')
    .limit(limit)
    .execute();
  return rows.map(({ position: _, ...refusal }) => refusal);
}

/** Deletes refusals that the supervisor has added to its audit chain (SV-8). */
export async function deleteRefusals(
  trx: GatewayTransaction,
  refusalIds: readonly string[],
): Promise<void> {
  await trx.deleteFrom('refusals').where('refusal_id', 'in', refusalIds).execute();
}
