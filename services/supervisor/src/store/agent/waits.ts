import type { AgentKey, RunKey } from '@writ/kernel';
import { hasWorkingDescendant, isInputWait } from '../../domain/agent/waiting-for.ts';
import { seen, stopped } from '../../domain/clock/active-clock.ts';
import { liveRunState } from '../../domain/run/run-state.ts';
import { haltCovering } from '../halt/halts.ts';
import { loadRun, setRunState } from '../run/runs.ts';
import type { SupervisorTransaction } from '../supervisor-store.ts';
import {
  type AgentRow,
  agentsOf,
  clockColumns,
  clockOf,
  findAgent,
  keyOf,
  saveAgent,
} from './agents.ts';

/** A change that spawn-budget reports: an agent began or ended a wait (EM-1). */
export interface WaitChange {
  /** The signals of a wait that began; undefined when it ended. */
  readonly signals: readonly string[] | undefined;
  /** Time on spawn-budget's clock. */
  readonly at: Date;
  /** Number of the change in the pool; a repeated or older change is ignored. */
  readonly sequence: bigint;
}

/**
 * Records that an agent waits, or runs again. While it waits, it has no slot grant, and its active time stops unless
 * an agent below it works (EM-1, AG-7). Ignores repeated and older changes, and agents that have ended.
 */
export async function noteWait(
  trx: SupervisorTransaction,
  key: AgentKey,
  { signals, at, sequence }: WaitChange,
): Promise<void> {
  const agent = await findAgent(trx, key);
  if (agent === undefined || agent.ended_at !== null || sequence <= agent.wait_sequence) return;
  const changes = signals === undefined ? await ended(trx, agent, at) : began(agent, signals, at);
  await saveAgent(trx, key, { ...changes, wait_sequence: sequence });
  await updateClocksAndRunState(trx, key, at);
}

/**
 * Ends the recorded wait of an agent that acts, because the event that reports the end of the wait may be late (EM-1).
 */
export async function noteActivity(
  trx: SupervisorTransaction,
  agent: AgentRow,
  at: Date,
): Promise<void> {
  if (agent.waiting_for === null) return;
  await saveAgent(trx, keyOf(agent), await ended(trx, agent, at));
  await updateClocksAndRunState(trx, keyOf(agent), at);
}

/** Returns the changed columns of an agent that began to wait. A halted or paused agent stays PARKED. */
function began(agent: AgentRow, signals: readonly string[], at: Date): Partial<AgentRow> {
  return {
    ...clockColumns(stopped(clockOf(agent), at)),
    ...(agent.state === 'RUNNING' && { state: 'SUSPENDED' }),
    waiting_since: agent.waiting_since ?? at,
    waiting_for: JSON.stringify(signals),
  };
}

/**
 * Returns the changed columns of an agent that ended a reported wait; an agent with a pending approval stays SUSPENDED.
 */
async function ended(
  trx: SupervisorTransaction,
  agent: AgentRow,
  at: Date,
): Promise<Partial<AgentRow>> {
  if (agent.waiting_for === null) return {};
  if (await hasPendingApproval(trx, keyOf(agent))) return { waiting_for: null };
  return { waiting_for: null, waiting_since: null, ...(await awake(trx, agent, at)) };
}

/**
 * Returns the changed columns of an agent that no longer waits: PARKED if it is paused or halted, otherwise RUNNING.
 */
export async function awake(
  trx: SupervisorTransaction,
  agent: AgentRow,
  at: Date,
): Promise<Partial<AgentRow>> {
  const isHeld =
    agent.paused_since !== null || (await haltCovering(trx, keyOf(agent))) !== undefined;
  if (isHeld) return { state: 'PARKED' };
  return { state: 'RUNNING', ...clockColumns(seen(clockOf(agent), at)) };
}

/** Whether an approval of the agent is pending. */
export async function hasPendingApproval(
  trx: SupervisorTransaction,
  key: AgentKey,
): Promise<boolean> {
  const pending = await trx
    .selectFrom('approvals')
    .select('approval_id')
    .where('tenant', '=', key.tenant)
    .where('run_id', '=', key.runId)
    .where('instance', '=', key.instance)
    .where('state', '=', 'pending')
    .limit(1)
    .executeTakeFirst();
  return pending !== undefined;
}

/**
 * Updates the clocks of suspended agents and the state of the run; must be called after every change of an agent's
 * state at `at`. The clock of a suspended agent runs while an agent below it works; the run waits only when none of its
 * agents works, and is parked when all of them are halted (EM-1, AG-7).
 */
export async function updateClocksAndRunState(
  trx: SupervisorTransaction,
  key: RunKey,
  at: Date,
): Promise<void> {
  const agents = (await agentsOf(trx, key)).filter(({ ended_at }) => ended_at === null);
  for (const agent of agents) {
    if (agent.state !== 'SUSPENDED') continue;
    const clock = clockOf(agent);
    const works = hasWorkingDescendant(agent, agents);
    if (works === (clock.activeSince !== null)) continue;
    const changed = works ? seen(clock, at) : stopped(clock, at);
    await saveAgent(trx, { ...key, instance: agent.instance }, clockColumns(changed));
  }
  const run = await loadRun(trx, key);
  if (!DERIVED_STATES.has(run.state)) return;
  const state = await stateOfRun(trx, agents);
  if (state !== run.state) await setRunState(trx, key, state, at);
}

/** Returns the state of a run, derived from its live agents and the halts that cover them (AG-7, SV-9). */
export async function stateOfRun(
  trx: SupervisorTransaction,
  agents: readonly AgentRow[],
): Promise<ReturnType<typeof liveRunState>> {
  // A run with a RUNNING agent is RUNNING, so halts are read only while no agent is RUNNING.
  const works = agents.some(({ state }) => state === 'RUNNING');
  const living = agents.map(async (agent) => ({
    state: agent.state,
    isHalted: !works && (await haltCovering(trx, keyOf(agent))) !== undefined,
    waitsForInput: isInputWait(agent.waiting_for),
  }));
  return liveRunState(await Promise.all(living));
}

/**
 * The states of a run that {@link updateClocksAndRunState} changes; a parked run is resumed by the order that lifts the
 * halt.
 */
const DERIVED_STATES: ReadonlySet<string> = new Set(['RUNNING', 'SUSPENDED', 'WAITING_FOR_INPUT']);
