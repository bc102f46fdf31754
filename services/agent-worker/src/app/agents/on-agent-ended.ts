import type { AgentManifest } from '../../domain/agent/manifest.ts';
import { type Reply, replyFor, replySignal } from '../../domain/agent/message.ts';
import type { AgentRow } from '../../store/agents.ts';
import { endFollows } from '../../store/follows.ts';
import { keyOf } from '../../store/keys.ts';
import { pauseTimersWhileParked } from '../../store/timers.ts';
import type { WorkerTransaction } from '../../store/worker-store.ts';
import { publishItem } from './publish-item.ts';
import { sendSignal } from './send-signal.ts';

/** How an agent ended. */
export interface AgentEnd {
  readonly stopReason: string;
  /** The approved answer, if there is one. */
  readonly answer?: string | undefined;
}

/**
 * Agent kinds for which the worker publishes the approved answer; feeds and custom agents publish their items
 * themselves.
 */
const PUBLISHING_KINDS: ReadonlySet<string> = new Set([
  'react',
  'json-action',
  'orchestrator',
  'flow',
  'user-proxy',
]);

/**
 * Delivers the result of an ended agent: sends the reply to the agent that waits for it; if no agent waits for a reply,
 * publishes the approved answer to the output_topic of the ended agent, if one is set. Deletes the topic subscriptions
 * of the ended agent, except durable ones. Must run in the transaction that ends the agent (RT-3, AG-3, AG-5). Returns
 * whether another agent was sent a signal.
 */
export async function onAgentEnded(
  trx: WorkerTransaction,
  agent: AgentRow,
  { stopReason, answer }: AgentEnd,
  at: Date,
): Promise<boolean> {
  const key = keyOf(agent);
  await endFollows(trx, key);
  const reply: Reply = replyFor(stopReason, answer);
  if (agent.reply_to === null) return await publishAnswer(trx, agent, reply, at);
  await pauseTimersWhileParked(trx, key, { from: 'PARKED', to: 'COMPLETED' }, at);
  const signal = {
    id: `reply-${agent.instance}`,
    name: replySignal(agent.instance),
    payload: JSON.stringify(reply),
  };
  return await sendSignal(trx, { ...key, instance: agent.reply_to }, signal, at);
}

async function publishAnswer(
  trx: WorkerTransaction,
  agent: AgentRow,
  reply: Reply,
  at: Date,
): Promise<boolean> {
  if (reply.kind !== 'replied' || !PUBLISHING_KINDS.has(agent.kind)) return false;
  const { outputTopic: topic } = JSON.parse(agent.manifest) as AgentManifest;
  if (topic === '') return false;
  return await publishItem(
    trx,
    keyOf(agent),
    { topic, item: { text: reply.text }, id: 'final' },
    at,
  );
}
