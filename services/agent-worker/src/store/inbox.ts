import type { AgentKey, RunKey } from '@writ/kernel';
import type { Message } from '../domain/agent/message.ts';
import { agentColumns } from './keys.ts';
import type { WorkerReader, WorkerTransaction } from './worker-store.ts';

/** Adds a message to an agent's inbox. */
export async function insertMessage(
  trx: WorkerTransaction,
  key: AgentKey,
  message: Message,
  at: Date,
): Promise<void> {
  await trx
    .insertInto('inbox')
    .values({
      ...agentColumns(key),
      message_id: message.messageId,
      message: JSON.stringify(message),
      received_at: at,
    })
    .execute();
}

/** Returns an agent's messages in order of arrival. */
export async function loadInbox(db: WorkerReader, key: AgentKey): Promise<Message[]> {
  const rows = await db
    .selectFrom('inbox')
    .select('message')
    .where((eb) => eb.and(agentColumns(key)))
    .orderBy('position')
    .execute();
  return rows.map(({ message }) => JSON.parse(message) as Message);
}

/** Deletes the messages of a run (SUP-4). */
export async function deleteInboxes(trx: WorkerTransaction, run: RunKey): Promise<void> {
  await trx
    .deleteFrom('inbox')
    .where('tenant', '=', run.tenant)
    .where('run_id', '=', run.runId)
    .execute();
}
