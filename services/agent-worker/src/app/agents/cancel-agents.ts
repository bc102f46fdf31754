import type { AgentKey } from '@writ/kernel';
import { HistoryRetention, isTerminal } from '@writ/kernel';
import { reduceAgent } from '../../domain/agent/state.ts';
import type { WorkerEvents } from '../../events.ts';
import { agentsOf, saveAgent, statusColumns, statusOf } from '../../store/agents.ts';
import { type CancelRow, findCancel, insertCancel } from '../../store/cancels.ts';
import { deleteFollows } from '../../store/follows.ts';
import { deleteInboxes } from '../../store/inbox.ts';
import { deleteJournals } from '../../store/journal.ts';
import { keyOf } from '../../store/keys.ts';
import { deleteSignals } from '../../store/signals.ts';
import { deleteSnapshots } from '../../store/snapshots.ts';
import { deleteTimers } from '../../store/timers.ts';
import type { WorkerTransaction } from '../../store/worker-store.ts';
import type { Dependencies } from './dependencies.ts';
import { onAgentEnded } from './on-agent-ended.ts';

/**
 * Ends agents in any state: running, suspended, parked or not yet delivered (SUP-8). In-flight work
 * is aborted; journal and payloads are deleted according to the retention (SUP-4). Returns the number
 * of agents that it ended.
 */
export async function cancelAgents(
  { store, events, flushEventsSoon, agents }: Dependencies,
  order: Omit<CancelRow, 'ended'>,
): Promise<number> {
  const { ended, keys, hasWoken } = await store.transaction((trx) => endAgents(trx, order, events));
  flushEventsSoon();
  for (const key of keys) agents.cancel(key);
  if (hasWoken) agents.nudge();
  return ended;
}

async function endAgents(
  trx: WorkerTransaction,
  order: Omit<CancelRow, 'ended'>,
  events: WorkerEvents,
): Promise<{
  readonly ended: number;
  readonly keys: readonly AgentKey[];
  /** Whether an agent that waited for one of them was woken. */
  readonly hasWoken: boolean;
}> {
  const run = { tenant: order.tenant, runId: order.run_id };
  const at = order.cancelled_at;
  const known = await findCancel(trx, run, order.request_id);
  if (known !== undefined) return { ended: known.ended, keys: [], hasWoken: false };
  const ofRun = await agentsOf(trx, run);
  const concerned = ofRun.filter(
    ({ instance }) => order.instance === '' || instance === order.instance,
  );
  const isWholeRun = order.instance === '';
  let ended = 0;
  let hasWoken = false;
  for (const agent of concerned) {
    const status = statusOf(agent);
    if (isTerminal(status.state)) continue;
    const next = reduceAgent(status, { type: 'ended', stopReason: order.stop_reason });
    await saveAgent(trx, keyOf(agent), {
      ...statusColumns(next, order.cancelled_at),
      lease_owner: null,
      lease_expires_at: null,
      step_ended: agent.step_started,
    });
    // When the whole run ends, no agent is left to be notified.
    if (isWholeRun) await deleteFollows(trx, keyOf(agent));
    else hasWoken ||= await onAgentEnded(trx, agent, { stopReason: order.stop_reason }, at);
    // The worker that runs the agent can no longer write, so its step ends here.
    if (agent.step_ended < agent.step_started) {
      const scope = { agent, step: agent.step_started };
      await events.stepEnded(trx, scope, order.stop_reason, order.cancelled_at);
    }
    ended += 1;
  }
  await insertCancel(trx, { ...order, ended });
  if (isWholeRun) await deleteTimers(trx, run);
  if (isWholeRun && order.retention !== HistoryRetention.PERMANENT) {
    await deleteJournals(trx, run);
    await deleteSnapshots(trx, run);
    await deleteSignals(trx, run);
    await deleteInboxes(trx, run);
  }
  return { ended, keys: concerned.map(keyOf), hasWoken };
}
