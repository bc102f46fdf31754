import type { AgentKey, RunKey } from '@writ/kernel';
import { prepareQuery, prepareWrite } from '@writ/store';
import type { ProxyReader, ProxyTransaction } from './proxy-store.ts';

/** The key of a model request: its agent, its digest, and its number among equal requests. */
export interface CallNumber extends AgentKey {
  /** SHA-256 of the request. */
  readonly digest: string;
  readonly number: number;
}

/** Returns the latest of the equal requests of an agent. */
export async function latestCall(
  trx: ProxyTransaction,
  agent: AgentKey,
  digest: string,
): Promise<{ readonly number: number; readonly delivered: boolean } | undefined> {
  return (await selectLatest(trx, { ...agent, digest })).rows[0];
}

const selectLatest = prepareQuery((db: ProxyReader, call: Omit<CallNumber, 'number'>) =>
  db
    .selectFrom('calls')
    .select(['number', 'delivered'])
    .where('tenant', '=', call.tenant)
    .where('run_id', '=', call.runId)
    .where('instance', '=', call.instance)
    .where('digest', '=', call.digest)
    .orderBy('number', 'desc')
    .limit(1),
);

/** Records a request. */
export async function insertCall(trx: ProxyTransaction, call: CallNumber, at: Date): Promise<void> {
  await insertRow(trx, { ...call, at });
}

const insertRow = prepareWrite((db: ProxyReader, call: CallNumber & { readonly at: Date }) =>
  db.insertInto('calls').values({
    tenant: call.tenant,
    run_id: call.runId,
    instance: call.instance,
    digest: call.digest,
    number: call.number,
    delivered: false,
    created_at: call.at,
  }),
);

/** Records that the client has received the whole answer. */
export async function markDelivered(trx: ProxyTransaction, call: CallNumber): Promise<void> {
  await updateDelivered(trx, call);
}

const updateDelivered = prepareWrite((db: ProxyReader, call: CallNumber) =>
  db
    .updateTable('calls')
    .set({ delivered: true })
    .where('tenant', '=', call.tenant)
    .where('run_id', '=', call.runId)
    .where('instance', '=', call.instance)
    .where('digest', '=', call.digest)
    .where('number', '=', call.number),
);

/** Deletes the model requests, the tool calls and the handles of a run. */
export async function deleteCalls(trx: ProxyTransaction, run: RunKey): Promise<void> {
  for (const name of ['calls', 'tool_calls', 'handles'] as const) {
    await trx
      .deleteFrom(name)
      .where((eb) => eb.and({ tenant: run.tenant, run_id: run.runId }))
      .execute();
  }
}
