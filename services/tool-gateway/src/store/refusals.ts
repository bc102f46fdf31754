import type { Insertable } from 'kysely';
import type { GatewayTransaction } from './gateway-store.ts';
import type { RefusalsTable } from './schema.ts';

/** Puts on record that somebody asked for what no writ of theirs orders (TG-1). */
export async function insertRefusal(
  trx: GatewayTransaction,
  refusal: Insertable<RefusalsTable>,
): Promise<void> {
  await trx.insertInto('refusals').values(refusal).execute();
}
