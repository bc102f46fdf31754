import type { AgentKey } from '@writ/kernel';
import { pickColumns, prepareQuery, prepareWrite } from '@writ/store';
import type { Insertable } from 'kysely';
import type { Message } from '../domain/agent/message.ts';
import { agentColumns } from './keys.ts';
import type { InboxTable } from './schema.ts';
import type { WorkerReader, WorkerTransaction } from './worker-store.ts';

/** Adds a message to an agent's inbox. */
export async function insertMessage(
  trx: WorkerTransaction,
  key: AgentKey,
  message: Message,
  at: Date,
): Promise<void> {
  await insertRow(trx, {
    ...agentColumns(key),
    message_id: message.messageId,
    message: JSON.stringify(message),
    received_at: at,
  });
}

const insertRow = prepareWrite((db: WorkerReader, row: Insertable<InboxTable>) =>
  db
    .insertInto('inbox')
    .values(
      pickColumns(row, ['tenant', 'run_id', 'instance', 'message_id', 'message', 'received_at']),
    ),
);

/** Returns an agent's messages in order of arrival. */
export async function loadInbox(db: WorkerReader, key: AgentKey): Promise<Message[]> {
  const { rows } = await selectMessages(db, key);
  return rows.map(({ message }) => JSON.parse(message) as Message);
}

const selectMessages = prepareQuery((db: WorkerReader, key: AgentKey) =>
  db
    .selectFrom('inbox')
    .select('message')
    .where('tenant', '=', key.tenant)
    .where('run_id', '=', key.runId)
    .where('instance', '=', key.instance)
    .orderBy('position'),
);
