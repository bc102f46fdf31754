import { timestampDate } from '@bufbuild/protobuf/wkt';
import type { Slot } from '@writ/contracts/writ/spawn/v1/pool_pb';
import { NotFoundError, type RunKey, UnavailableError } from '@writ/kernel';
import type { SupervisorContext } from '../../context.ts';
import { activeMsAt } from '../../domain/clock/active-clock.ts';
import { budgetFromJson } from '../../domain/manifest/manifest-json.ts';
import { hasLease, type SpawnBudgetPeer } from '../../peers/spawn-budget.ts';
import {
  type AgentRow,
  activeAgents,
  agentsOf,
  clockOf,
  keyOf,
  loadAgent,
} from '../../store/agent/agents.ts';
import { overdueAgents } from '../../store/agent/deadline.ts';
import { endChild, recordEnding } from '../../store/agent/endings.ts';
import { noteLeaseExpiry } from '../../store/agent/pauses.ts';
import { noteWait } from '../../store/agent/waits.ts';
import { overdueRuns } from '../../store/run/live-runs.ts';
import type { SupervisorTransaction } from '../../store/supervisor-store.ts';
import { rootKeyOf } from './start-run-order.ts';

type Context = Pick<SupervisorContext, 'store' | 'clock' | 'peers' | 'telemetry'>;

/**
 * Sweep: ends runs and children past their deadline with `deadline`, and agents past their active time with
 * `max_seconds` (EM-1, SUP-8).
 */
export async function endOverdue(context: Context): Promise<void> {
  const { store, clock } = context;
  const now = clock.now();
  for (const run of await overdueRuns(store.db, now)) {
    await store.transaction(
      (trx) => recordEnding(trx, { ...rootKeyOf(run), stopReason: 'deadline' }, now),
      { run: rootKeyOf(run), background: true },
    );
  }
  for (const child of await overdueAgents(store.db, now)) {
    await store.transaction(
      (trx) => endChild(trx, { ...keyOf(child), stopReason: 'deadline' }, now),
      { run: keyOf(child), background: true },
    );
  }
  await endOutOfTime(context, now);
}

/**
 * Ends agents past their active time. Reports of waits and expired leases may be late or lost, so the slots are first
 * read from spawn-budget: only an agent with a leased slot can act (SB-4). While spawn-budget is unreachable, no agent
 * gets a slot grant, so no agent is ended. Any other error affects only one agent; the remaining agents are still
 * ended.
 */
async function endOutOfTime(context: Context, now: Date): Promise<void> {
  const { store, telemetry } = context;
  const overdue = (await activeAgents(store.db)).filter((agent) => isOutOfTime(agent, now));
  for (const agent of overdue) {
    try {
      await endUnlessWaiting(context, agent, now);
    } catch (error) {
      const { tenant, run_id, instance } = agent;
      const fields = { err: error, tenant, run_id, agent: instance };
      telemetry.log.warn(fields, 'agent past its active time is not ended yet');
      if (error instanceof UnavailableError) return;
    }
  }
}

/**
 * Ends an agent past its active time. First applies the waits and expired leases that spawn-budget reports; does not
 * end the agent if it is then within its active time.
 */
async function endUnlessWaiting(
  { store, peers }: Context,
  agent: AgentRow,
  now: Date,
): Promise<void> {
  const ending = { ...keyOf(agent), stopReason: 'max_seconds' };
  const slots = await slotsOf(peers.spawnBudget, keyOf(agent));
  await store.transaction(
    async (trx) => {
      await noteSlots(trx, agent, slots, now);
      const current = await loadAgent(trx, keyOf(agent));
      if (current.ended_at !== null || !isOutOfTime(current, now)) return;
      if (agent.parent_instance === null) await recordEnding(trx, ending, now);
      else await endChild(trx, ending, now);
    },
    { run: keyOf(agent), background: true },
  );
}

function isOutOfTime(agent: AgentRow, now: Date): boolean {
  const { maxActiveMs } = budgetFromJson(agent.execution_budget);
  if (maxActiveMs === undefined || agent.active_since === null) return false;
  return activeMsAt(clockOf(agent), now) > maxActiveMs;
}

/** Returns the slots of a run from spawn-budget: held, paused and waiting slots; empty if the pool does not exist. */
async function slotsOf(spawnBudget: SpawnBudgetPeer, run: RunKey): Promise<readonly Slot[]> {
  try {
    const { pool } = await spawnBudget.getPool(run);
    return pool === undefined ? [] : [...pool.holders, ...pool.paused, ...pool.waiting];
  } catch (error) {
    if (error instanceof NotFoundError) return [];
    throw error;
  }
}

/**
 * Applies the waits that spawn-budget reports. Stops the clock of an agent if spawn-budget reports that neither the
 * agent nor any live agent below it has a lease. An agent that is missing in the report is treated as having a lease.
 */
async function noteSlots(
  trx: SupervisorTransaction,
  agent: AgentRow,
  slots: readonly Slot[],
  now: Date,
): Promise<void> {
  const run = keyOf(agent);
  for (const { agent: of, waitTime, waitingFor: signals, waitSequence: sequence } of slots) {
    if (of === undefined || waitTime === undefined) continue;
    const wait = { signals, at: timestampDate(waitTime), sequence };
    await noteWait(trx, { ...run, instance: of.instance }, wait);
  }
  const idle = slots.filter((slot) => !hasLease(slot));
  const idleInstances = new Set(idle.map((slot) => slot.agent?.instance));
  const agents = (await agentsOf(trx, run)).filter(({ ended_at }) => ended_at === null);
  const canAct = agents.filter(({ instance }) => !idleInstances.has(instance));
  const isLeased = canAct.some(({ instance }) => instance === run.instance);
  if (isLeased || hasDescendant(agent, agents, canAct)) return;
  await noteLeaseExpiry(trx, run, now);
}

/** Whether a descendant of an agent is in `wanted`. */
function hasDescendant(
  { instance }: Pick<AgentRow, 'instance'>,
  agents: readonly AgentRow[],
  wanted: readonly AgentRow[],
): boolean {
  return agents.some(
    (child) =>
      child.parent_instance === instance &&
      (wanted.includes(child) || hasDescendant(child, agents, wanted)),
  );
}
