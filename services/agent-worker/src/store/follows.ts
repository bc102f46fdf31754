import type { AgentKey } from '@writ/kernel';
import { prepareWrite } from '@writ/store';
import { FEED_ITEM } from '../domain/agent/message.ts';
import { agentColumns, keyOf } from './keys.ts';
import { pendingSignals } from './signals.ts';
import type { WorkerReader, WorkerTransaction } from './worker-store.ts';

/** The agent that follows a topic, with the session and the name that identify it in later runs. */
export interface Follower extends AgentKey {
  readonly sessionId: string;
  readonly name: string;
  /** Whether the subscription continues in the next run of the agent in its session. */
  readonly isDurable: boolean;
}

/** A subscriber of a topic. */
export interface Subscriber extends AgentKey {
  readonly isDurable: boolean;
}

/**
 * Subscribes an agent to a topic of its tenant (AG-5); idempotent. Replaces the durable subscription of an ended run of
 * the agent in the session, and moves the unread items of that subscription to this agent.
 */
export async function insertFollow(
  trx: WorkerTransaction,
  follower: Follower,
  topic: string,
  at: Date,
): Promise<void> {
  const { sessionId, name, isDurable } = follower;
  const owner = isDurable ? { session_id: sessionId, agent: name } : {};
  const { numInsertedOrUpdatedRows: inserted } = await trx
    .insertInto('follows')
    .values({ ...agentColumns(follower), topic, followed_at: at, ...owner })
    .onConflict((conflict) =>
      conflict.columns(['tenant', 'topic', 'run_id', 'instance']).doNothing(),
    )
    .executeTakeFirstOrThrow();
  if (inserted === 0n) return;
  for (const ended of await endedFollowers(trx, follower, topic)) {
    await moveItems(trx, ended, follower, topic);
    await trx
      .deleteFrom('follows')
      .where((eb) => eb.and({ ...agentColumns(ended), topic }))
      .execute();
  }
}

/** Returns the ended agents whose durable subscription the follower continues. */
async function endedFollowers(
  trx: WorkerTransaction,
  { tenant, sessionId, name }: Follower,
  topic: string,
): Promise<AgentKey[]> {
  const rows = await trx
    .selectFrom('follows')
    .innerJoin('agents', (join) =>
      join
        .onRef('agents.tenant', '=', 'follows.tenant')
        .onRef('agents.run_id', '=', 'follows.run_id')
        .onRef('agents.instance', '=', 'follows.instance'),
    )
    .select(['follows.tenant', 'follows.run_id', 'follows.instance'])
    .where('follows.tenant', '=', tenant)
    .where('follows.session_id', '=', sessionId)
    .where('follows.agent', '=', name)
    .where('follows.topic', '=', topic)
    .where('agents.ended_at', 'is not', null)
    .execute();
  return rows.map(keyOf);
}

/** Moves the unread items of a topic to another agent and preserves their order. */
async function moveItems(
  trx: WorkerTransaction,
  from: AgentKey,
  to: AgentKey,
  topic: string,
): Promise<void> {
  for (const { position, payload } of await pendingSignals(trx, from, FEED_ITEM)) {
    if ((JSON.parse(payload) as { topic?: unknown }).topic !== topic) continue;
    await trx
      .updateTable('signals')
      .set({ run_id: to.runId, instance: to.instance })
      .where('position', '=', position)
      .execute();
  }
}

/** Returns the subscribers of a topic, oldest subscription first. */
export async function followersOf(
  db: WorkerReader,
  tenant: string,
  topic: string,
): Promise<Subscriber[]> {
  const rows = await db
    .selectFrom('follows')
    .select(['tenant', 'run_id', 'instance', 'agent'])
    .where('tenant', '=', tenant)
    .where('topic', '=', topic)
    .orderBy('followed_at')
    .orderBy('instance')
    .execute();
  return rows.map((row) => ({ ...keyOf(row), isDurable: row.agent !== null }));
}

/**
 * Deletes the subscriptions of an agent that has ended, except durable ones. A durable subscription is deleted, too,
 * when another instance of the agent in the session has the same subscription, since that instance receives the same
 * items.
 */
export async function endFollows(trx: WorkerTransaction, key: AgentKey): Promise<void> {
  await deleteEnded(trx, key);
}

const deleteEnded = prepareWrite((db: WorkerReader, { tenant, runId, instance }: AgentKey) =>
  db
    .deleteFrom('follows')
    .where((eb) => eb.and(agentColumns({ tenant, runId, instance })))
    .where(({ or, eb, exists, selectFrom }) =>
      or([
        eb('follows.agent', 'is', null),
        exists(
          selectFrom('follows as others')
            .select('others.instance')
            .whereRef('others.tenant', '=', 'follows.tenant')
            .whereRef('others.session_id', '=', 'follows.session_id')
            .whereRef('others.agent', '=', 'follows.agent')
            .whereRef('others.topic', '=', 'follows.topic')
            // Two runs may have instances of the same name.
            .where((other) =>
              other.or([
                other('others.run_id', '<>', runId),
                other('others.instance', '<>', instance),
              ]),
            ),
        ),
      ]),
    ),
);
