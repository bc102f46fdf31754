import { type AgentKey, agentColumns, keyOf } from './keys.ts';
import type { WorkerReader, WorkerTransaction } from './worker-store.ts';

/** Has an agent hear of a topic of its tenant from now on (AG-5); again changes nothing. */
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

/** Who follows a topic of a tenant, first come first. */
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

/** An agent that has ended follows nothing any more. */
export async function deleteFollows(trx: WorkerTransaction, agent: AgentKey): Promise<void> {
  await trx
    .deleteFrom('follows')
    .where((eb) => eb.and(agentColumns(agent)))
    .execute();
}
