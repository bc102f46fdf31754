import type { SupervisorTransaction } from '../supervisor-store.ts';

/** Who wants to be the only one to do something, and for how long at most. */
export interface LeaseRequest {
  readonly name: string;
  readonly holder: string;
  readonly ttlMs: number;
}

/**
 * Takes or renews a lease that is the holder's, free or over; returns whether it is the holder's now.
 * Its row stays locked until the end of the transaction, so whatever the transaction does, it does as
 * the only one: a holder that was overtaken finds out here, and does nothing.
 */
export async function holdLease(
  trx: SupervisorTransaction,
  { name, holder, ttlMs }: LeaseRequest,
  now: Date,
): Promise<boolean> {
  const expiresAt = new Date(now.getTime() + ttlMs);
  const { numUpdatedRows } = await trx
    .updateTable('leases')
    .set({ holder, expires_at: expiresAt })
    .where('name', '=', name)
    .where(({ or, eb }) => or([eb('holder', '=', holder), eb('expires_at', '<=', now)]))
    .executeTakeFirst();
  if (numUpdatedRows > 0n) return true;
  const inserted = await trx
    .insertInto('leases')
    .values({ name, holder, expires_at: expiresAt })
    .onConflict((conflict) => conflict.column('name').doNothing())
    .executeTakeFirst();
  return (inserted.numInsertedOrUpdatedRows ?? 0n) > 0n;
}

/** Gives a lease back, if it is the holder's. */
export async function releaseLease(
  trx: SupervisorTransaction,
  { name, holder }: LeaseRequest,
): Promise<void> {
  await trx.deleteFrom('leases').where('name', '=', name).where('holder', '=', holder).execute();
}
