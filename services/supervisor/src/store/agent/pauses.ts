import type { AgentKey } from '@writ/kernel';
import { afterSlotChange, type SlotChange, type SlotKnowledge } from '../../domain/agent/pause.ts';
import { leaseExpired, seen, stopped } from '../../domain/clock/active-clock.ts';
import { haltCovering } from '../halt/halts.ts';
import type { SupervisorTransaction } from '../supervisor-store.ts';
import { type AgentRow, clockColumns, clockOf, findAgent, keyOf, saveAgent } from './agents.ts';
import { updateClocksAndRunState } from './waits.ts';

/** The known state of an agent's slot (SB-4). */
export function slotOf(agent: AgentRow): SlotKnowledge {
  return { pausedSince: agent.paused_since, changedAt: agent.slot_changed_at };
}

/**
 * Records that an agent was paused or resumed. A paused agent is rejected, and its active clock is stopped (SB-4,
 * EM-1). Ignores changes older than the last one, and agents that have ended.
 */
export async function noteSlotChange(
  trx: SupervisorTransaction,
  key: AgentKey,
  change: SlotChange,
  now: Date,
): Promise<void> {
  const agent = await findAgent(trx, key);
  if (agent === undefined || agent.ended_at !== null) return;
  const known = slotOf(agent);
  const after = afterSlotChange(known, change, now);
  if (after === known) return;
  const columns = { paused_since: after.pausedSince, slot_changed_at: after.changedAt };
  if (after.pausedSince === null) {
    await resume(trx, agent, columns, now);
    return;
  }
  const isRunning = agent.state === 'RUNNING';
  await saveAgent(trx, key, {
    ...columns,
    ...clockColumns(stopped(clockOf(agent), now)),
    ...(isRunning && { state: 'PARKED' }),
  });
  await updateClocksAndRunState(trx, key, now);
}

/**
 * Records that the lease on an agent's slot expired at `at`: the active clock of the agent stops at that time and runs
 * again from its next activity (EM-1). Slot grants expire before the lease, so nothing else changes.
 */
export async function noteLeaseExpiry(
  trx: SupervisorTransaction,
  key: AgentKey,
  at: Date,
): Promise<void> {
  const agent = await findAgent(trx, key);
  if (agent === undefined || agent.ended_at !== null) return;
  await saveAgent(trx, key, clockColumns(leaseExpired(clockOf(agent), at)));
}

/** Resumes a paused agent; the state of a suspended or halted agent does not change. */
async function resume(
  trx: SupervisorTransaction,
  agent: AgentRow,
  columns: Partial<AgentRow>,
  now: Date,
): Promise<void> {
  const key = keyOf(agent);
  const stays = agent.state !== 'PARKED' || agent.paused_since === null;
  if (stays || (await haltCovering(trx, key)) !== undefined) {
    await saveAgent(trx, key, columns);
    return;
  }
  const clock = clockColumns(seen(clockOf(agent), now));
  const state = agent.waiting_for === null ? 'RUNNING' : 'SUSPENDED';
  await saveAgent(trx, key, { ...columns, ...(state === 'RUNNING' && clock), state });
  await updateClocksAndRunState(trx, key, now);
}
