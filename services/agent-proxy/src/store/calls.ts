import type { AgentKey, RunKey } from '@writ/kernel';
import type { ProxyTransaction } from './proxy-store.ts';

/** A model request among the equal ones of its agent. */
export interface CallNumber extends AgentKey {
  /** SHA-256 of the request. */
  readonly digest: string;
  readonly number: number;
}

/** Returns the latest of the equal requests of an agent. */
export async function latestCall(
  trx: ProxyTransaction,
  { tenant, runId: run_id, instance }: AgentKey,
  digest: string,
): Promise<{ readonly number: number; readonly delivered: boolean } | undefined> {
  return await trx
    .selectFrom('calls')
    .select(['number', 'delivered'])
    .where((eb) => eb.and({ tenant, run_id, instance, digest }))
    .orderBy('number', 'desc')
    .limit(1)
    .executeTakeFirst();
}

/** Records a request. */
export async function insertCall(
  trx: ProxyTransaction,
  { tenant, runId: run_id, instance, digest, number }: CallNumber,
  at: Date,
): Promise<void> {
  await trx
    .insertInto('calls')
    .values({ tenant, run_id, instance, digest, number, delivered: false, created_at: at })
    .execute();
}

/** Records that the client has received the whole answer. */
export async function markDelivered(
  trx: ProxyTransaction,
  { tenant, runId: run_id, instance, digest, number }: CallNumber,
): Promise<void> {
  await trx
    .updateTable('calls')
    .set({ delivered: true })
    .where((eb) => eb.and({ tenant, run_id, instance, digest, number }))
    .execute();
}

/** Deletes the model requests and the tool calls of a run. */
export async function deleteCalls(trx: ProxyTransaction, run: RunKey): Promise<void> {
  for (const name of ['calls', 'tool_calls', 'handles'] as const) {
    await trx
      .deleteFrom(name)
      .where((eb) => eb.and({ tenant: run.tenant, run_id: run.runId }))
      .execute();
  }
}
