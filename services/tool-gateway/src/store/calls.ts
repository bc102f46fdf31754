import type { Selectable } from 'kysely';
import type { CallKey } from '../domain/writ.ts';
import type { GatewayReader, GatewayTransaction } from './gateway-store.ts';
import type { CallsTable } from './schema.ts';

/** One tool call as it stands. */
export type CallRow = Selectable<CallsTable>;

/** What an outcome changes of a call. */
export type CallOutcome = Pick<
  CallRow,
  | 'state'
  | 'ended_at'
  | 'duration_ms'
  | 'stop_reason'
  | 'message'
  | 'result_kind'
  | 'result_content'
  | 'result_media_type'
  | 'result_truncated'
  | 'result_full_size'
  | 'result_full_sha256'
  | 'receipt'
  | 'revision'
> &
  Partial<Pick<CallRow, 'resolve_request_id' | 'resolve_digest' | 'resolved_by' | 'resolved_at'>>;

/** The call of this key, undefined when there is none. */
export async function findCall(db: GatewayReader, key: CallKey): Promise<CallRow | undefined> {
  return await db
    .selectFrom('calls')
    .selectAll()
    .where('tenant', '=', key.tenant)
    .where('run_id', '=', key.runId)
    .where('agent_instance', '=', key.agentInstance)
    .where('call_id', '=', key.callId)
    .executeTakeFirst();
}

/** Records a new call. */
export async function insertCall(trx: GatewayTransaction, call: CallRow): Promise<void> {
  await trx.insertInto('calls').values(call).execute();
}

/** Records that an interrupted call is begun again. */
export async function beginAgain(trx: GatewayTransaction, key: CallKey): Promise<void> {
  await update(trx, key)
    .set((row) => ({ attempts: row('attempts', '+', 1) }))
    .where('state', '=', 'intent')
    .execute();
}

/**
 * Writes the outcome of a call that stands at `from`.
 * @returns false when it stands elsewhere by now, and nothing was written
 */
export async function writeOutcome(
  trx: GatewayTransaction,
  key: CallKey,
  from: 'intent' | 'unknown',
  outcome: CallOutcome,
): Promise<boolean> {
  const result = await update(trx, key).set(outcome).where('state', '=', from).executeTakeFirst();
  return result.numUpdatedRows > 0n;
}

/** Calls whose intent has no outcome, the oldest first. */
export async function callsWithoutOutcome(db: GatewayReader): Promise<CallRow[]> {
  return await db
    .selectFrom('calls')
    .selectAll()
    .where('state', '=', 'intent')
    .orderBy('started_at')
    .execute();
}

/** Deletes the recorded results of a run, or of one agent of it; digests and receipts stay (SUP-4). */
export async function purgeResults(
  trx: GatewayTransaction,
  scope: { readonly tenant: string; readonly runId: string; readonly agentInstance?: string },
): Promise<void> {
  let query = trx
    .updateTable('calls')
    .set({ result_content: null, message: '' })
    .where('tenant', '=', scope.tenant)
    .where('run_id', '=', scope.runId);
  if (scope.agentInstance !== undefined) {
    query = query.where('agent_instance', '=', scope.agentInstance);
  }
  await query.execute();
}

/** The key of a call. */
export function keyOf(call: CallRow): CallKey {
  return {
    tenant: call.tenant,
    runId: call.run_id,
    agentInstance: call.agent_instance,
    callId: call.call_id,
  };
}

function update(trx: GatewayTransaction, key: CallKey) {
  return trx
    .updateTable('calls')
    .where('tenant', '=', key.tenant)
    .where('run_id', '=', key.runId)
    .where('agent_instance', '=', key.agentInstance)
    .where('call_id', '=', key.callId);
}
