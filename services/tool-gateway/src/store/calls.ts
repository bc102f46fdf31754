import type { CallKey, Scope } from '@writ/kernel';
import { pickColumns, prepareQuery, prepareWrite } from '@writ/store';
import { type Selectable, sql } from 'kysely';
import type { CallState } from '../domain/call-state.ts';
import type { GatewayReader, GatewayTransaction } from './gateway-store.ts';
import type { CallsTable } from './schema.ts';

/** A row of `calls`. */
export type CallRow = Selectable<CallsTable>;

/** The call with this key; undefined when it does not exist. */
export async function findCall(db: GatewayReader, key: CallKey): Promise<CallRow | undefined> {
  const { rows } = await selectCall(db, key);
  return rows[0];
}

const selectCall = prepareQuery((db: GatewayReader, key: CallKey) =>
  db
    .selectFrom('calls')
    .selectAll()
    .where('tenant', '=', key.tenant)
    .where('run_id', '=', key.runId)
    .where('agent_instance', '=', key.instance)
    .where('call_id', '=', key.callId),
);

/**
 * Returns the row of a call in the state `intent` with default values; the caller overrides the columns that it knows.
 */
export function blankCall(key: CallKey, at: Date): CallRow {
  return {
    tenant: key.tenant,
    run_id: key.runId,
    agent_instance: key.instance,
    call_id: key.callId,
    agent_name: '',
    session_id: '',
    step: 0,
    tool: '',
    side_effect: null,
    args_sha256: '',
    writ_id: '',
    definition_digest: '',
    registry_version: '',
    result_fields: '[]',
    traceparent: '',
    state: 'intent',
    owner: '',
    attempts: 0,
    started_at: at,
    ended_at: null,
    duration_ms: null,
    stop_reason: '',
    message: '',
    repetition: null,
    result_kind: null,
    result_content: null,
    result_media_type: '',
    result_truncated: false,
    result_full_size: 0,
    result_full_sha256: '',
    receipt: null,
    revision: 0,
    resolve_request_id: null,
    resolve_digest: null,
    resolved_by: null,
    resolved_at: null,
  };
}

/** Records a new call. */
export async function insertCall(trx: GatewayTransaction, call: CallRow): Promise<void> {
  await insertRow(trx, call);
}

const KEY = ['tenant', 'run_id', 'agent_instance', 'call_id'] as const;

/** Columns that `updateOutcome` leaves unchanged. */
const INTENT = [
  'agent_name',
  'session_id',
  'step',
  'tool',
  'side_effect',
  'args_sha256',
  'writ_id',
  'definition_digest',
  'registry_version',
  'result_fields',
  'traceparent',
  'owner',
  'attempts',
  'started_at',
  'repetition',
] as const;

const OUTCOME = [
  'state',
  'ended_at',
  'duration_ms',
  'stop_reason',
  'message',
  'result_kind',
  'result_content',
  'result_media_type',
  'result_truncated',
  'result_full_size',
  'result_full_sha256',
  'receipt',
  'revision',
  'resolve_request_id',
  'resolve_digest',
  'resolved_by',
  'resolved_at',
] as const;

const insertRow = prepareWrite((db: GatewayReader, row: CallRow) =>
  db.insertInto('calls').values(pickColumns(row, [...KEY, ...INTENT, ...OUTCOME])),
);

/** Records another attempt at an interrupted call, by `owner`. */
export async function restartCall(
  trx: GatewayTransaction,
  key: CallKey,
  owner: string,
): Promise<void> {
  await trx
    .updateTable('calls')
    .set((row) => ({ attempts: row('attempts', '+', 1), owner }))
    .where('tenant', '=', key.tenant)
    .where('run_id', '=', key.runId)
    .where('agent_instance', '=', key.instance)
    .where('call_id', '=', key.callId)
    .where('state', '=', 'intent')
    .execute();
}

/**
 * Writes the outcome of a call in the state `from`.
 * @returns false when the call has another state, and nothing was written
 */
export async function updateOutcome(
  trx: GatewayTransaction,
  from: 'intent' | 'unknown',
  call: CallRow,
): Promise<boolean> {
  const { numAffectedRows } = await updateRow(trx, { ...call, from });
  return (numAffectedRows ?? 0n) > 0n;
}

type Ended = Pick<CallRow, (typeof KEY)[number] | (typeof OUTCOME)[number]>;

const updateRow = prepareQuery(
  (db: GatewayReader, row: Ended & { readonly from: CallRow['state'] }) =>
    db
      .updateTable('calls')
      .set(pickColumns(row, OUTCOME))
      .where('tenant', '=', row.tenant)
      .where('run_id', '=', row.run_id)
      .where('agent_instance', '=', row.agent_instance)
      .where('call_id', '=', row.call_id)
      .where('state', '=', row.from),
);

/**
 * Clears the owner of a call if the call is still in the state `intent` and has this owner; the call then has no outcome
 * until it is repeated or voided.
 */
export async function releaseCall(trx: GatewayTransaction, call: CallRow): Promise<void> {
  const { tenant, runId, instance, callId } = keyOf(call);
  await trx
    .updateTable('calls')
    .set({ owner: '' })
    .where('tenant', '=', tenant)
    .where('run_id', '=', runId)
    .where('agent_instance', '=', instance)
    .where('call_id', '=', callId)
    .where('owner', '=', call.owner)
    .where('state', '=', 'intent')
    .execute();
}

/**
 * Returns the calls in the state `intent` that have an owner, in order of their start; the owner may be a live or a
 * dead replica.
 */
export async function inFlightCallRows(
  db: GatewayReader,
  { tenant, runId, instance }: Scope = {},
): Promise<CallRow[]> {
  let query = db
    .selectFrom('calls')
    .selectAll()
    // A literal, so that the planner can use the partial index.
    .where('state', '=', sql.lit('intent'))
    .where('owner', '!=', '')
    .orderBy('started_at');
  if (tenant !== undefined) query = query.where('tenant', '=', tenant);
  if (runId !== undefined) query = query.where('run_id', '=', runId);
  if (instance !== undefined) query = query.where('agent_instance', '=', instance);
  return await query.execute();
}

/** Deletes the results and messages of the recorded calls of a run, or of one agent; digests and receipts stay (SUP-4). */
export async function purgeResults(
  trx: GatewayTransaction,
  scope: { readonly tenant: string; readonly runId: string; readonly instance?: string },
): Promise<void> {
  let query = trx
    .updateTable('calls')
    .set({ result_content: null, message: '' })
    .where('tenant', '=', scope.tenant)
    .where('run_id', '=', scope.runId);
  if (scope.instance !== undefined) {
    query = query.where('agent_instance', '=', scope.instance);
  }
  await query.execute();
}

/** Whether a recorded call is running, interrupted or has an outcome. `live` means that a process works on it. */
export function callStateOf({ state }: Pick<CallRow, 'state'>, live: boolean): CallState {
  if (state === 'intent') return live ? 'running' : 'interrupted';
  return state;
}

/** The key of a call. */
export function keyOf(call: CallRow): CallKey {
  return {
    tenant: call.tenant,
    runId: call.run_id,
    instance: call.agent_instance,
    callId: call.call_id,
  };
}
