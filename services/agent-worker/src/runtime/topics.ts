import {
  canonicalDigest,
  type FollowOptions,
  HistoryRetention,
  type JsonObject,
  PermissionDeniedError,
  PreconditionError,
} from '@writ/kernel';
import { publishItem } from '../app/agents/publish-item.ts';
import type { Operation } from '../domain/journal/entry.ts';
import { insertFollow } from '../store/follows.ts';
import type { RunScope } from './scope.ts';

/**
 * Sends an item to all subscribers of a topic, in the transaction that journals the operation. Each subscriber receives
 * the item once; subscribers that wait for an item wake (AG-5, RT-3).
 * @throws PermissionDeniedError TOPIC_NOT_ALLOWED for a topic other than the manifest's output_topic
 */
export async function emit(scope: RunScope, topic: string, item: JsonObject): Promise<void> {
  const { session, journal, commits, cursor, onRunnable } = scope;
  const { branch, position, callId } = cursor.next();
  assertTopic(topic, [session.manifest.outputTopic], session.manifest.name, 'output_topic');
  const argsDigest = canonicalDigest({ topic, item });
  const operation: Operation = { branch, position, part: 0, kind: 'emit', argsDigest };
  if (journal.recall(operation) !== undefined) return;
  session.check();
  journal.record({ ...operation, value: null }, false);
  commits.add(
    async (trx, at) => {
      await publishItem(trx, session.lease, { topic, item, id: callId }, at);
    },
    { tenant: session.row.tenant },
  );
  await commits.commit();
  onRunnable();
}

/**
 * Subscribes the agent to a topic, whose items arrive as signals (AG-5).
 * @throws PermissionDeniedError TOPIC_NOT_ALLOWED for a topic that is not in the manifest; PreconditionError
 *   FOLLOW_NOT_RETAINED for a durable subscription of an agent whose content is deleted
 */
export async function follow(
  scope: RunScope,
  topic: string,
  { durable: isDurable = false }: FollowOptions = {},
): Promise<void> {
  const { session, journal, commits, cursor } = scope;
  const { branch, position } = cursor.next();
  assertTopic(topic, session.manifest.followTopics, session.manifest.name, 'follow_topics');
  if (isDurable) assertRetained(session);
  const argsDigest = canonicalDigest({ topic, ...(isDurable && { isDurable }) });
  const operation: Operation = { branch, position, part: 0, kind: 'follow', argsDigest };
  if (journal.recall(operation) !== undefined) return;
  session.check();
  journal.record({ ...operation, value: null }, false);
  const { tenant, session_id: sessionId, name } = session.row;
  const follower = { ...session.lease, sessionId, name, isDurable };
  commits.add((trx, at) => insertFollow(trx, follower, topic, at), { tenant });
  // Committed at once, because the subscription may move unread items to this agent.
  await commits.commit();
}

/**
 * Rejects a durable subscription unless the retention is PERMANENT: unread items are stored in the content of the ended
 * agent, and this content must not be deleted.
 */
function assertRetained({ meta, manifest }: RunScope['session']): void {
  const retention = meta.supervision?.retention;
  if (retention === HistoryRetention.PERMANENT) return;
  throw new PreconditionError(
    'FOLLOW_NOT_RETAINED',
    `Agent "${manifest.name}" must have the retention PERMANENT, not ${retention}, to follow a topic durably.`,
    { field: 'retention', agent: manifest.name },
  );
}

function assertTopic(
  topic: string,
  allowed: readonly string[],
  agent: string,
  field: string,
): void {
  if (topic !== '' && allowed.includes(topic)) return;
  throw new PermissionDeniedError(
    'TOPIC_NOT_ALLOWED',
    `Topic ${JSON.stringify(topic)} is not in ${field} of the manifest "${agent}".`,
    { field, agent },
  );
}
