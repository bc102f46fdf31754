import type { SupervisorTransaction } from './supervisor-store.ts';

/** Remembers a refusal that somebody may tell of again; returns whether it was news (TG-1). */
export async function rememberRefusal(
  trx: SupervisorTransaction,
  tenant: string,
  refusalId: string,
  at: Date,
): Promise<boolean> {
  const inserted = await trx
    .insertInto('refusals')
    .values({ tenant, refusal_id: refusalId, recorded_at: at })
    .onConflict((conflict) => conflict.columns(['tenant', 'refusal_id']).doNothing())
    .executeTakeFirst();
  return (inserted.numInsertedOrUpdatedRows ?? 0n) > 0n;
}
