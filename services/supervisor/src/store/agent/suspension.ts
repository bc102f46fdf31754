import type { AgentKey } from '@writ/kernel';
import { stopped } from '../../domain/clock/active-clock.ts';
import type { SupervisorTransaction } from '../supervisor-store.ts';
import { clockColumns, clockOf, loadAgent, saveAgent } from './agents.ts';
import { awake, hasPendingApproval, settleWaits } from './waits.ts';

/**
 * Suspends an agent at `at` for an approval: its clock stops (EM-1). The run becomes SUSPENDED or WAITING_FOR_INPUT
 * when none of its agents is running.
 */
export async function suspendAgent(
  trx: SupervisorTransaction,
  key: AgentKey,
  at: Date,
): Promise<void> {
  const agent = await loadAgent(trx, key);
  if (agent.ended_at !== null) return;
  await saveAgent(trx, key, {
    ...clockColumns(stopped(clockOf(agent), at)),
    state: 'SUSPENDED',
    waiting_since: at,
  });
  await settleWaits(trx, key, at);
}

/**
 * Resumes an agent and its run at `at` after a decision; a paused or halted agent is parked instead. An agent that has
 * ended, or has another pending approval, is unchanged.
 */
export async function wakeAgent(
  trx: SupervisorTransaction,
  key: AgentKey,
  at: Date,
): Promise<void> {
  const agent = await loadAgent(trx, key);
  if (agent.ended_at !== null || (await hasPendingApproval(trx, key))) return;
  const columns = await awake(trx, agent, at);
  await saveAgent(trx, key, { ...columns, waiting_since: null, waiting_for: null });
  await settleWaits(trx, key, at);
}
