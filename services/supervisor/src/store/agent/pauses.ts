import type { AgentKey } from '@writ/kernel';
import { lapsed, seen, stopped } from '../../domain/clock/active-clock.ts';
import { afterSlotChange, type SlotKnowledge } from '../../domain/slot/pause.ts';
import { haltOver } from '../halt/halts.ts';
import { loadRun, setRunState } from '../run/runs.ts';
import type { SupervisorTransaction } from '../supervisor-store.ts';
import { type AgentRow, clockColumns, clockOf, findAgent, saveAgent } from './agents.ts';

/** That an agent lost its slot to another, or has one again. */
export interface SlotChange {
  readonly change: 'paused' | 'resumed';
  /** On spawn-budget's clock, or when it was asked to do what brought this about. */
  readonly at: Date;
}

/** What is known of an agent's slot (SB-4). */
export function slotOf(agent: AgentRow): SlotKnowledge {
  return { pausedSince: agent.paused_since, changedAt: agent.slot_changed_at };
}

/**
 * Takes down that an agent was paused or resumed: while it is paused it is refused, and its active
 * clock stands (SB-4, EM-1). News that is older than what is known changes nothing, and neither does
 * any of an agent that has ended.
 */
export async function noteSlotChange(
  trx: SupervisorTransaction,
  key: AgentKey,
  { change, at }: SlotChange,
  now: Date,
): Promise<void> {
  const agent = await findAgent(trx, key);
  if (agent === undefined || agent.ended_at !== null) return;
  const known = slotOf(agent);
  const after = afterSlotChange(known, change, at);
  if (after === known) return;
  const columns = { paused_since: after.pausedSince, slot_changed_at: after.changedAt };
  if (after.pausedSince === null) {
    await resume(trx, agent, key, columns, now);
    return;
  }
  const isFree = agent.state === 'RUNNING';
  await saveAgent(trx, key, {
    ...columns,
    ...clockColumns(stopped(clockOf(agent), now)),
    ...(isFree && { state: 'PARKED' }),
  });
}

/**
 * Takes down that the lease on an agent's slot ended at `at`: its active clock stands from then on
 * until it is seen again (EM-1). No grant outlives its lease, so nothing else is to be done.
 */
export async function noteLeaseExpiry(
  trx: SupervisorTransaction,
  key: AgentKey,
  at: Date,
): Promise<void> {
  const agent = await findAgent(trx, key);
  if (agent === undefined || agent.ended_at !== null) return;
  await saveAgent(trx, key, clockColumns(lapsed(clockOf(agent), at)));
}

/** What waits for a person besides goes on waiting, and what is halted stays parked. */
async function resume(
  trx: SupervisorTransaction,
  agent: AgentRow,
  key: AgentKey,
  columns: Partial<AgentRow>,
  now: Date,
): Promise<void> {
  const stays = agent.state !== 'PARKED' || agent.paused_since === null;
  if (stays || (await haltOver(trx, key)) !== undefined) {
    await saveAgent(trx, key, columns);
    return;
  }
  const clock = clockColumns(seen(clockOf(agent), now));
  await saveAgent(trx, key, { ...columns, ...clock, state: 'RUNNING' });
  const { state } = await loadRun(trx, key);
  if (state === 'SUSPENDED') await setRunState(trx, key, 'RUNNING');
}
