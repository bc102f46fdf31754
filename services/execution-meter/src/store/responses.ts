import type { IssuedIds } from '../domain/chat/chat.ts';
import type { TokenUsage } from '../domain/ledger/spending.ts';
import type { MeterReader, MeterTransaction } from './meter-store.ts';
import type { StoredTab } from './tabs.ts';

/** An answer whose ids are recorded. */
export interface IssuedResponse extends IssuedIds {
  readonly callId: string;
  /** The provider account to which the ids belong. */
  readonly provider: string;
  readonly spent: TokenUsage;
  readonly at: Date;
}

/** An id that a provider issued to a session, with its call and usage. */
export interface KnownId {
  readonly id: string;
  /** Run, instance and id of the call that received the id. */
  readonly call: string;
  readonly provider: string;
  /** Tokens of prompt and answer. */
  readonly total: bigint;
  /** Tokens of the answer. */
  readonly output: bigint;
}

/** Records the ids of an answer for its session: no other session can refer to them (AP-2). */
export async function insertResponse(
  trx: MeterTransaction,
  { tenant, sessionId: session_id, runId, instance }: StoredTab,
  { responseId, itemIds, callId, provider, spent, at }: IssuedResponse,
): Promise<void> {
  const row = {
    tenant,
    session_id,
    provider,
    call: `${runId}/${instance}/${callId}`,
    total_tokens: spent.input + spent.output,
    output_tokens: spent.output,
    created_at: at,
  };
  await trx
    .insertInto('response_ids')
    .values([responseId, ...itemIds].map((id) => ({ ...row, id })))
    .onConflict((conflict) => conflict.doNothing())
    .execute();
}

/** Returns the records of the given ids; omits ids that no provider issued to the session. */
export async function knownIds(
  db: MeterReader,
  { tenant, sessionId: session_id }: StoredTab,
  ids: readonly string[],
): Promise<readonly KnownId[]> {
  const rows = await db
    .selectFrom('response_ids')
    .selectAll()
    .where((eb) => eb.and({ tenant, session_id }))
    .where('id', 'in', ids)
    .execute();
  return rows.map((row) => ({
    id: row.id,
    call: row.call,
    provider: row.provider,
    total: row.total_tokens,
    output: row.output_tokens,
  }));
}

/**
 * Deletes the id of a response, so that no later request can continue the response. Requests of the session can still
 * refer to the ids of its items.
 */
export async function deleteResponse(
  trx: MeterTransaction,
  { tenant, sessionId: session_id }: StoredTab,
  id: string,
): Promise<void> {
  await trx
    .deleteFrom('response_ids')
    .where((eb) => eb.and({ tenant, session_id, id }))
    .execute();
}
