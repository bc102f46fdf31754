import { covers, type RunKey } from '@writ/kernel';
import { seen, stopped } from '../../domain/clock/active-clock.ts';
import type { Halt } from '../../domain/halt/halt.ts';
import {
  type AgentRow,
  agentsOf,
  clockColumns,
  clockOf,
  keyOf,
  saveAgent,
} from '../agent/agents.ts';
import { stateOfRun, updateClocksAndRunState } from '../agent/waits.ts';
import { extendApprovals, type LiftedHalt } from '../approval/extend-approvals.ts';
import { makeOrdersDue } from '../orders.ts';
import { rememberRequest } from '../requests.ts';
import { loadRun, type RunRow, setRunState } from '../run/runs.ts';
import type { SupervisorReader, SupervisorTransaction } from '../supervisor-store.ts';
import { haltCovering } from './halts.ts';

/**
 * Parks the agents of a run that a halt covers: RUNNING agents become PARKED, and their active clocks stop at the time
 * of the halt (EM-1, AG-7). Returns the agents in scope. Idempotent.
 */
export async function parkHalted(
  trx: SupervisorTransaction,
  key: RunKey,
  halt: Halt,
): Promise<readonly AgentRow[]> {
  const run = await loadRun(trx, key);
  if (!isLiving(run)) return [];
  const covered = await haltedAgents(trx, key, halt);
  for (const agent of covered) {
    if (agent.state !== 'RUNNING') continue;
    const clock = clockOf(agent);
    const runs = clock.activeSince !== null;
    await saveAgent(trx, keyOf(agent), {
      ...(runs && clockColumns(stopped(clock, halt.orderedAt))),
      state: 'PARKED',
    });
  }
  await settleRunState(trx, run, halt.orderedAt);
  return covered;
}

/**
 * Resumes the agents that a lifted halt had parked, unless another halt covers them or they have no slot. A suspended
 * agent stays suspended. Extends the pending approvals of the agents, see {@link extendApprovals}. Idempotent.
 */
export async function unparkHalted(
  trx: SupervisorTransaction,
  key: RunKey,
  lifted: LiftedHalt,
): Promise<void> {
  const run = await loadRun(trx, key);
  if (!isLiving(run)) return;
  const { halt, at } = lifted;
  const isFirst = await isFirstResume(trx, key, halt, at);
  for (const agent of await haltedAgents(trx, key, halt)) {
    if (isFirst) await extendApprovals(trx, agent, lifted);
    if ((await haltCovering(trx, keyOf(agent))) !== undefined) continue;
    if (agent.state !== 'PARKED' || agent.paused_since !== null) continue;
    const clock = clockOf(agent);
    // The clock of an undelivered agent starts with its delivery.
    const began = clock.lastSeenAt !== null;
    const isWaiting = agent.waiting_for !== null;
    await saveAgent(trx, keyOf(agent), {
      ...(began && !isWaiting && clockColumns(seen(clock, at))),
      state: isWaiting ? 'SUSPENDED' : 'RUNNING',
    });
  }
  await settleRunState(trx, run, at);
  // The halt delayed the orders that start the run, spawn children or wake agents.
  await makeOrdersDue(trx, key, at);
}

/** Returns the live agents of a run in the scope of a halt; the halt need not be in force. */
export async function haltedAgents(
  db: SupervisorReader,
  key: RunKey,
  halt: Halt,
): Promise<readonly AgentRow[]> {
  return (await agentsOf(db, key)).filter(
    (agent) => agent.ended_at === null && covers(halt.scope, keyOf(agent)),
  );
}

/** Updates the state of a run from the states of its agents. A PENDING run stays PENDING until its delivery. */
async function settleRunState(trx: SupervisorTransaction, run: RunRow, at: Date): Promise<void> {
  if (run.state === 'PENDING') return;
  const key = { tenant: run.tenant, runId: run.run_id };
  const living = (await agentsOf(trx, key)).filter(({ ended_at }) => ended_at === null);
  const state = await stateOfRun(trx, living);
  if (state !== run.state) await setRunState(trx, key, state, at);
  // Updates the clocks of agents that wait for a parked or resumed agent.
  await updateClocksAndRunState(trx, key, at);
}

function isLiving({ state, ended_at }: RunRow): boolean {
  return ended_at === null && state !== 'ENDING';
}

/**
 * Records that a halt resumes a run, and returns true the first time, so that a repeated order does not extend
 * approvals again.
 */
async function isFirstResume(
  trx: SupervisorTransaction,
  { tenant, runId }: RunKey,
  { haltId }: Halt,
  at: Date,
): Promise<boolean> {
  const request = { tenant, subject: haltId, method: 'resume', requestId: runId, digest: '' };
  return await rememberRequest(trx, request, at);
}
