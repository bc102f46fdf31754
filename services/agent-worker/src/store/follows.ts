import type { AgentKey } from '@writ/kernel';
import { agentColumns, keyOf } from './keys.ts';
import type { WorkerReader, WorkerTransaction } from './worker-store.ts';

/** Subscribes an agent to a topic of its tenant (AG-5); idempotent. */
export async function insertFollow(
  trx: WorkerTransaction,
  agent: AgentKey,
  topic: string,
  at: Date,
): Promise<void> {
  await trx
    .insertInto('follows')
    .values({ ...agentColumns(agent), topic, followed_at: at })
    .onConflict((conflict) =>
      conflict.columns(['tenant', 'topic', 'run_id', 'instance']).doNothing(),
    )
    .execute();
}

/** Returns the subscribers of a topic, oldest subscription first. */
export async function followersOf(
  db: WorkerReader,
  tenant: string,
  topic: string,
): Promise<AgentKey[]> {
  const rows = await db
    .selectFrom('follows')
    .select(['tenant', 'run_id', 'instance'])
    .where('tenant', '=', tenant)
    .where('topic', '=', topic)
    .orderBy('followed_at')
    .orderBy('instance')
    .execute();
  return rows.map(keyOf);
}

/** Deletes all subscriptions of an agent. */
export async function deleteFollows(trx: WorkerTransaction, agent: AgentKey): Promise<void> {
  await trx
    .deleteFrom('follows')
    .where((eb) => eb.and(agentColumns(agent)))
    .execute();
}
