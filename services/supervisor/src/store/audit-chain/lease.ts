import type { SupervisorTransaction } from '../supervisor-store.ts';

/** The lease to hold. */
export interface LeaseRequest {
  readonly name: string;
  readonly holder: string;
  readonly ttlMs: number;
}

/**
 * Acquires or renews a lease that is free, expired or already held; returns whether it is held now. The row stays
 * locked until the end of the transaction, so that the transaction is exclusive, and a holder that lost the lease
 * does nothing.
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

/** Releases a lease, if it is held. */
export async function releaseLease(
  trx: SupervisorTransaction,
  { name, holder }: LeaseRequest,
): Promise<void> {
  await trx.deleteFrom('leases').where('name', '=', name).where('holder', '=', holder).execute();
}
