import { type AgentKey, HistoryRetention, isTerminal } from '@writ/kernel';
import { recordedEvents } from '@writ/store';
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
import { deleteLimits } from '../../store/rate-limits.ts';
import { deleteTimers } from '../../store/timers.ts';
import type { WorkerTransaction } from '../../store/worker-store.ts';
import type { Dependencies } from './dependencies.ts';
import { onAgentEnded } from './on-agent-ended.ts';

/** A request to end agents. */
export interface CancelOrder extends Omit<CancelRow, 'ended'> {
  /** The approved answer with which the root of the run ended; omitted without one. */
  readonly answer?: string | undefined;
  /** Events of these agents that the supervisor has received with earlier requests. */
  readonly recorded: readonly WorkerEvent[];
}

/**
 * Ends agents in any state: running, suspended, parked or not yet delivered (SUP-8). In-flight work is aborted; when a
 * run ends, its content is deleted according to the retention of the run and of each agent (SUP-4). Returns the number
 * of ended agents, and the events of all requested agents, including agents that had ended before, that have not been
 * sent to the supervisor (HK-1).
 */
export async function cancelAgents(
  { store, events, flushEventsSoon, agents }: Dependencies,
  { answer, recorded, ...order }: CancelOrder,
): Promise<{ readonly ended: number; readonly events: readonly CarriedEvent[] }> {
  // Pending steps are committed first, because they would otherwise be missing from the timeline.
  await agents.flush({ tenant: order.tenant, runId: order.run_id });
  // The transaction locks the whole tenant, because an answer and subscriptions affect other runs of the tenant.
  const { ended, unreported, keys, hasWoken } = await store.transaction(
    (trx) => endAgents(trx, order, { answer, recorded }, events),
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
  { answer, recorded }: Pick<CancelOrder, 'answer' | 'recorded'>,
  events: WorkerEvents,
): Promise<{
  readonly ended: number;
  readonly unreported: readonly CarriedEvent[];
  readonly keys: readonly AgentKey[];
  /** Whether another agent was sent a signal, and may have become runnable. */
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
    const lost = await lostEvents(trx, agent, recorded);
    if (isTerminal(statusOf(agent).state)) {
      unreported.push(...(await addLostEvents(trx, { agent, lost }, order, events)));
      continue;
    }
    const end = await endAgent(trx, { agent, lost }, { order, answer }, events);
    unreported.push(...end.carried);
    hasWoken ||= end.hasWoken;
    ended += 1;
  }
  await insertCancel(trx, { ...order, ended });
  if (isWholeRun) {
    await deleteTimers(trx, run);
    await deleteLimits(trx, run);
    await deleteUnretained(trx, ofRun, order);
  }
  return { ended, unreported, keys: concerned.map(keyOf), hasWoken };
}

/** Ends one live agent; returns its unreported events, and whether another agent was sent a signal. */
async function endAgent(
  trx: WorkerTransaction,
  { agent, lost }: { readonly agent: AgentRow; readonly lost: readonly WorkerEvent[] },
  {
    order,
    answer,
  }: { readonly order: Omit<CancelRow, 'ended'>; readonly answer: string | undefined },
  events: WorkerEvents,
): Promise<{ readonly carried: readonly CarriedEvent[]; readonly hasWoken: boolean }> {
  const { stop_reason: stopReason, cancelled_at: at } = order;
  const status = statusOf(agent);
  const carried = await addLostEvents(trx, { agent, lost }, order, events);
  await saveAgent(trx, keyOf(agent), {
    ...statusColumns(reduceAgent(status, { type: 'ended', stopReason }), at),
    lease_owner: null,
    lease_expires_at: null,
  });
  for (const name of status.waitingFor) {
    const since = readWaits(agent.waiting_since).get(name);
    if (since !== undefined) events.waitEnded(trx, { agent, name, since, at, stopReason });
  }
  let hasWoken = false;
  // When the whole run ends, agents of the run need no notification. The end of the root is still handled, because its
  // worker may have died before it published the answer.
  if (order.instance === '' && agent.reply_to !== null) await endFollows(trx, keyOf(agent));
  else hasWoken = await onAgentEnded(trx, agent, { stopReason, answer }, at);
  return { carried, hasWoken };
}

/**
 * Stores the events of the last steps that only the supervisor has, and ends these steps, because the worker that runs
 * the agent can no longer write. Returns the events of the agent that have not been sent to the supervisor.
 */
async function addLostEvents(
  trx: WorkerTransaction,
  { agent, lost }: { readonly agent: AgentRow; readonly lost: readonly WorkerEvent[] },
  { stop_reason: status, cancelled_at: at }: Omit<CancelRow, 'ended'>,
  events: WorkerEvents,
): Promise<readonly CarriedEvent[]> {
  const unreported = readEvents(agent.unreported_events);
  const { step_started: step, step_ended: ended } = lastSteps(agent, lost);
  const last = ended < step ? [events.stepEnded({ agent, step }, { status, after: [] }, at)] : [];
  if (lost.length + last.length === 0) return unreported;
  for (const event of [...lost, ...last]) await events.append(trx, event, at);
  const carried = addEvents(
    unreported,
    last.map(({ payload }) => carriedEvent(payload)),
  );
  await saveAgent(trx, keyOf(agent), {
    step_started: step,
    step_ended: step,
    unreported_events: JSON.stringify(carried),
  });
  return carried;
}

/**
 * Returns events that the supervisor received before the worker stored them, and that the worker could not store
 * because it stopped or lost its lease. They must be stored and published to the bus, too (HK-1).
 */
async function lostEvents(
  trx: WorkerTransaction,
  agent: AgentRow,
  recorded: readonly WorkerEvent[],
): Promise<WorkerEvent[]> {
  const later = recorded.filter((event) => isOf(agent, event) && isLater(agent, event));
  const ids = later.map(({ eventId }) => eventId);
  const stored = await recordedEvents(trx, ids);
  return later.filter(({ eventId }) => !stored.has(eventId));
}

function isOf(agent: AgentRow, { agent: other }: WorkerEvent): boolean {
  return (
    other.tenant === agent.tenant &&
    other.run_id === agent.run_id &&
    other.instance === agent.instance
  );
}

/**
 * Whether the store may lack an event, compared by step, because the events of an agent are stored in order. Events
 * outside of steps cannot be compared and are always treated as possibly missing; a repeated publication of an event
 * has the same id.
 */
function isLater(agent: AgentRow, { name, step }: WorkerEvent): boolean {
  switch (name) {
    case 'STEP_START':
      return step > agent.step_started;
    case 'STEP_END':
      return step > agent.step_ended;
    default:
      return step === 0 || step >= agent.step_started;
  }
}

/**
 * Returns the numbers of the last started and the last ended step, according to the row of the agent and the events
 * that are missing from it.
 */
function lastSteps(
  { step_started: started, step_ended: ended }: AgentRow,
  lost: readonly WorkerEvent[],
): Pick<AgentRow, 'step_started' | 'step_ended'> {
  const lastOf = (which: WorkerEvent['name']) =>
    lost.filter(({ name }) => name === which).map(({ step }) => step);
  return {
    step_started: Math.max(started, ...lastOf('STEP_START')),
    step_ended: Math.max(ended, ...lastOf('STEP_END')),
  };
}

/**
 * Deletes the content of an ended run according to its retention. If the run is retained, deletes only the content of
 * agents with a shorter retention, by default child agents (SUP-4). The reply of a child remains stored with its
 * parent.
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
