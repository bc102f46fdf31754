import { prepareQuery } from '@writ/store';
import { latestRecorded } from '../../domain/clock/wrong-clock.ts';
import type { SupervisorReader, SupervisorTransaction } from '../supervisor-store.ts';

/** A lease, its holder and how long it is held. */
export interface LeaseRequest {
  readonly name: string;
  readonly holder: string;
  readonly ttlMs: number;
}

/**
 * Acquires a lease that is free or expired, or renews one that `holder` already holds; returns whether `holder` holds
 * it now. A lease with an expiry time that only a wrong clock can have set is treated as expired (BD-3). The row stays
 * locked until the end of the transaction, so only one replica at a time runs the transaction, even when clocks differ.
 * When this returns false, the caller must not write.
 */
export async function holdLease(
  trx: SupervisorTransaction,
  { name, holder, ttlMs }: LeaseRequest,
  now: Date,
): Promise<boolean> {
  const expiresAt = new Date(now.getTime() + ttlMs);
  const latest = latestRecorded(expiresAt);
  const { numAffectedRows = 0n } = await updateFree(trx, { name, holder, expiresAt, now, latest });
  if (numAffectedRows > 0n) return true;
  const inserted = await trx
    .insertInto('leases')
    .values({ name, holder, expires_at: expiresAt })
    .onConflict((conflict) => conflict.column('name').doNothing())
    .executeTakeFirst();
  return (inserted.numInsertedOrUpdatedRows ?? 0n) > 0n;
}

const updateFree = prepareQuery(
  (
    db: SupervisorReader,
    lease: Pick<LeaseRequest, 'name' | 'holder'> &
      Readonly<Record<'expiresAt' | 'now' | 'latest', Date>>,
  ) =>
    db
      .updateTable('leases')
      .set({ holder: lease.holder, expires_at: lease.expiresAt })
      .where('name', '=', lease.name)
      .where(({ or, eb }) =>
        or([
          eb('holder', '=', lease.holder),
          eb('expires_at', '<=', lease.now),
          eb('expires_at', '>', lease.latest),
        ]),
      ),
);

/** Releases a lease, if `holder` holds it. */
export async function releaseLease(
  trx: SupervisorTransaction,
  { name, holder }: LeaseRequest,
): Promise<void> {
  await trx.deleteFrom('leases').where('name', '=', name).where('holder', '=', holder).execute();
}
