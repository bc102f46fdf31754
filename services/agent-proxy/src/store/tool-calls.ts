import type { AgentKey, CallKey } from '@writ/kernel';
import type { Selectable, Updateable } from 'kysely';
import type { ProxyReader, ProxyTransaction } from './proxy-store.ts';
import type { ToolCallsTable } from './schema.ts';

/** A row of `tool_calls`. */
export type ToolCallRow = Selectable<ToolCallsTable>;

/** Returns the key of a row. */
export function toolCallKeyOf(row: ToolCallRow): CallKey {
  const { tenant, run_id: runId, instance, call_id: callId } = row;
  return { tenant, runId, instance, callId };
}

/** Returns a tool call, or undefined when it does not exist. */
export async function findToolCall(
  db: ProxyReader,
  { tenant, runId: run_id, instance, callId: call_id }: CallKey,
): Promise<ToolCallRow | undefined> {
  return await db
    .selectFrom('tool_calls')
    .selectAll()
    .where((eb) => eb.and({ tenant, run_id, instance, call_id }))
    .executeTakeFirst();
}

/** Returns the latest of the equal calls of an agent. */
export async function latestToolCall(
  trx: ProxyTransaction,
  { tenant, runId: run_id, instance }: AgentKey,
  digest: string,
): Promise<ToolCallRow | undefined> {
  return await trx
    .selectFrom('tool_calls')
    .selectAll()
    .where((eb) => eb.and({ tenant, run_id, instance, digest }))
    .orderBy('number', 'desc')
    .limit(1)
    .executeTakeFirst();
}

/**
 * Returns the stored call whose approval a call of the model has used; undefined if there is none. `delivered_to` is
 * the SHA-256 of the id that the model gave its call.
 */
export async function findToolCallUsedBy(
  trx: ProxyTransaction,
  { tenant, runId: run_id, instance }: AgentKey,
  delivered_to: string,
): Promise<ToolCallRow | undefined> {
  return await trx
    .selectFrom('tool_calls')
    .selectAll()
    .where((eb) => eb.and({ tenant, run_id, instance, delivered_to }))
    .limit(1)
    .executeTakeFirst();
}

/** Inserts a new, undecided call and returns its row. */
export async function insertToolCall(
  trx: ProxyTransaction,
  { tenant, runId, instance, callId }: CallKey,
  call: Pick<ToolCallRow, 'tool' | 'digest' | 'number' | 'created_at'>,
): Promise<ToolCallRow> {
  const row: ToolCallRow = {
    tenant,
    run_id: runId,
    instance,
    call_id: callId,
    ...call,
    approval_id: null,
    decided_at: null,
    task_at: null,
    claimed_until: null,
    task_ended_at: null,
    cancelled: false,
    delivered: false,
    delivered_to: null,
    result_at: null,
    result_status: null,
    result_sha256: null,
    result_bytes: null,
  };
  await trx.insertInto('tool_calls').values(row).execute();
  return row;
}

/** Updates a call. */
export async function saveToolCall(
  trx: ProxyTransaction,
  { tenant, runId: run_id, instance, callId: call_id }: CallKey,
  changes: Updateable<Omit<ToolCallsTable, 'tenant' | 'run_id' | 'instance' | 'call_id'>>,
): Promise<void> {
  await trx
    .updateTable('tool_calls')
    .set(changes)
    .where((eb) => eb.and({ tenant, run_id, instance, call_id }))
    .execute();
}

/** Whether the agent has a call that waits for the decision of a person. */
export async function hasUndecidedCall(
  db: ProxyReader,
  { tenant, runId: run_id, instance }: AgentKey,
): Promise<boolean> {
  const found = await db
    .selectFrom('tool_calls')
    .select('call_id')
    .where((eb) => eb.and({ tenant, run_id, instance, cancelled: false }))
    .where('approval_id', 'is not', null)
    .where('decided_at', 'is', null)
    .limit(1)
    .executeTakeFirst();
  return found !== undefined;
}

/** Claims a task until `claimed_until`; changes nothing when the task has ended. */
export async function claimTask(
  trx: ProxyTransaction,
  { tenant, runId: run_id, instance, callId: call_id }: CallKey,
  claimed_until: Date,
): Promise<void> {
  await trx
    .updateTable('tool_calls')
    .set({ claimed_until })
    .where((eb) => eb.and({ tenant, run_id, instance, call_id }))
    .where('task_ended_at', 'is', null)
    .execute();
}

/**
 * Returns decided calls of unclaimed tasks that have no result yet, oldest first, except tasks of the tenants in
 * `withoutTenants`.
 */
export async function decidedTasks(
  db: ProxyReader,
  now: Date,
  limit: number,
  withoutTenants: readonly string[],
): Promise<ToolCallRow[]> {
  const tasks = db
    .selectFrom('tool_calls')
    .selectAll()
    .where('task_at', 'is not', null)
    .where('decided_at', 'is not', null)
    .where('task_ended_at', 'is', null)
    .where((eb) => eb.or([eb('claimed_until', 'is', null), eb('claimed_until', '<', now)]))
    .orderBy('decided_at')
    .limit(limit);
  const others =
    withoutTenants.length === 0 ? tasks : tasks.where('tenant', 'not in', withoutTenants);
  return await others.execute();
}
