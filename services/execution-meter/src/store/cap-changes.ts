import type { MeterTransaction } from './meter-store.ts';

/** One SetCaps request. */
export interface CapChange {
  readonly tenant: string;
  readonly requestId: string;
  readonly requestDigest: string;
  readonly setBy: string;
}

/**
 * Records a SetCaps request. If the tenant already has a request with the same id, records nothing and returns the
 * digest of that request; otherwise returns undefined.
 */
export async function recordCapChange(
  trx: MeterTransaction,
  { tenant, requestId, requestDigest, setBy }: CapChange,
  at: Date,
): Promise<string | undefined> {
  const inserted = await trx
    .insertInto('cap_changes')
    .values({
      tenant,
      request_id: requestId,
      request_digest: requestDigest,
      set_by: setBy,
      set_at: at,
    })
    .onConflict((conflict) => conflict.columns(['tenant', 'request_id']).doNothing())
    .executeTakeFirst();
  if ((inserted.numInsertedOrUpdatedRows ?? 0n) > 0n) return undefined;
  const known = await trx
    .selectFrom('cap_changes')
    .select('request_digest')
    .where('tenant', '=', tenant)
    .where('request_id', '=', requestId)
    .executeTakeFirstOrThrow();
  return known.request_digest;
}
