import type { AgentKey } from '@writ/kernel';
import { HistoryRetention, isTerminal } from '@writ/kernel';
import {
  addEvents,
  type CarriedEvent,
  carriedEvent,
  readEvents,
} from '../../domain/agent/carried-event.ts';
import { reduceAgent } from '../../domain/agent/state.ts';
import { restoreSupervision } from '../../domain/agent/supervision.ts';
import { readWaits } from '../../domain/agent/waits.ts';
import type { WorkerEvent, WorkerEvents } from '../../events.ts';
import { type AgentRow, agentsOf, saveAgent, statusColumns, statusOf } from '../../store/agents.ts';
import { type CancelRow, findCancel, insertCancel } from '../../store/cancels.ts';
import { deleteContent } from '../../store/content.ts';
import { endFollows } from '../../store/follows.ts';
import { keyOf } from '../../store/keys.ts';
import { deleteTimers } from '../../store/timers.ts';
import type { WorkerTransaction } from '../../store/worker-store.ts';
import type { Dependencies } from './dependencies.ts';
import { onAgentEnded } from './on-agent-ended.ts';

/** An order to end agents. */
export interface CancelOrder extends Omit<CancelRow, 'ended'> {
  /** The approved answer with which the root of the run ended; omitted without one. */
  readonly answer?: string | undefined;
}

/**
 * Ends agents in any state: running, suspended, parked or not yet delivered (SUP-8). In-flight work
 * is aborted; when a run ends, its content is deleted according to the retention of the run and of each
 * agent (SUP-4). Returns the number of agents that it ended, and their events that no request to the
 * supervisor has carried (HK-1).
 */
export async function cancelAgents(
  { store, events, flushEventsSoon, agents }: Dependencies,
  { answer, ...order }: CancelOrder,
): Promise<{ readonly ended: number; readonly events: readonly CarriedEvent[] }> {
  // The last steps would miss on the timeline otherwise.
  await agents.flush({ tenant: order.tenant, runId: order.run_id });
  // An answer and the subscriptions concern other runs of the tenant.
  const { ended, unreported, keys, hasWoken } = await store.transaction(
    (trx) => endAgents(trx, order, answer, events),
    { tenant: order.tenant },
  );
  flushEventsSoon();
  for (const key of keys) agents.cancel(key);
  if (hasWoken) agents.nudge();
  return { ended, events: unreported };
}

async function endAgents(
  trx: WorkerTransaction,
  order: Omit<CancelRow, 'ended'>,
  answer: string | undefined,
  events: WorkerEvents,
): Promise<{
  readonly ended: number;
  readonly unreported: readonly CarriedEvent[];
  readonly keys: readonly AgentKey[];
  /** Whether an agent that waited for one of them was woken. */
  readonly hasWoken: boolean;
}> {
  const run = { tenant: order.tenant, runId: order.run_id };
  const known = await findCancel(trx, run, order.request_id);
  const ofRun = await agentsOf(trx, run);
  const concerned = ofRun.filter(
    ({ instance }) => order.instance === '' || instance === order.instance,
  );
  if (known !== undefined) {
    const unreported = concerned.flatMap((agent) => readEvents(agent.unreported_events));
    return { ended: known.ended, unreported, keys: [], hasWoken: false };
  }
  const unreported: CarriedEvent[] = [];
  const isWholeRun = order.instance === '';
  let ended = 0;
  let hasWoken = false;
  for (const agent of concerned) {
    if (isTerminal(statusOf(agent).state)) {
      unreported.push(...readEvents(agent.unreported_events));
      continue;
    }
    const end = await endAgent(trx, agent, { order, answer }, events);
    unreported.push(...end.carried);
    hasWoken ||= end.hasWoken;
    ended += 1;
  }
  await insertCancel(trx, { ...order, ended });
  if (isWholeRun) {
    await deleteTimers(trx, run);
    await deleteUnretained(trx, ofRun, order);
  }
  return { ended, unreported, keys: concerned.map(keyOf), hasWoken };
}

/** Ends one agent that has not ended; returns its unreported events, and whether an agent that waited for it was woken. */
async function endAgent(
  trx: WorkerTransaction,
  agent: AgentRow,
  {
    order,
    answer,
  }: { readonly order: Omit<CancelRow, 'ended'>; readonly answer: string | undefined },
  events: WorkerEvents,
): Promise<{ readonly carried: readonly CarriedEvent[]; readonly hasWoken: boolean }> {
  const { stop_reason: stopReason, cancelled_at: at } = order;
  const status = statusOf(agent);
  const last = lastEvents(events, agent, order);
  const carried = addEvents(
    readEvents(agent.unreported_events),
    last.map(({ payload }) => carriedEvent(payload)),
  );
  await saveAgent(trx, keyOf(agent), {
    ...statusColumns(reduceAgent(status, { type: 'ended', stopReason }), at),
    lease_owner: null,
    lease_expires_at: null,
    step_ended: agent.step_started,
    unreported_events: JSON.stringify(carried),
  });
  for (const name of status.waitingFor) {
    const since = readWaits(agent.waiting_since).get(name);
    if (since !== undefined) events.waitEnded(trx, { agent, name, since, at, stopReason });
  }
  let hasWoken = false;
  // When the whole run ends, no agent of it is left to be notified; the worker that ran the root may
  // have died before it published the answer.
  if (order.instance === '' && agent.reply_to !== null) await endFollows(trx, keyOf(agent));
  else hasWoken = await onAgentEnded(trx, agent, { stopReason, answer }, at);
  for (const event of last) await events.append(trx, event, at);
  return { carried, hasWoken };
}

/**
 * Deletes the content of a run that has ended according to its retention, or that of its agents whose own
 * retention is shorter: children by default (SUP-4). What a child replied remains with its parent.
 */
async function deleteUnretained(
  trx: WorkerTransaction,
  agents: readonly AgentRow[],
  { tenant, run_id: runId, retention }: Omit<CancelRow, 'ended'>,
): Promise<void> {
  const run = { tenant, runId };
  if (retention !== HistoryRetention.PERMANENT) {
    await deleteContent(trx, run);
    return;
  }
  const unretained = agents.filter(
    ({ supervision }) => restoreSupervision(supervision).retention !== HistoryRetention.PERMANENT,
  );
  await deleteContent(
    trx,
    run,
    unretained.map(({ instance }) => instance),
  );
}

/** The worker that runs the agent can no longer write, so its step ends here. */
function lastEvents(
  events: WorkerEvents,
  agent: AgentRow,
  { stop_reason: status, cancelled_at: at }: Omit<CancelRow, 'ended'>,
): WorkerEvent[] {
  const { step_started: step, step_ended: ended } = agent;
  return ended < step ? [events.stepEnded({ agent, step }, { status, after: [] }, at)] : [];
}
