import type { AgentKey, CallKey } from '@writ/kernel';
import { waitsForOther } from '../../domain/agent/waiting-for.ts';
import { stopped } from '../../domain/clock/active-clock.ts';
import type { SupervisorTransaction } from '../supervisor-store.ts';
import { clockColumns, clockOf, loadAgent, saveAgent } from './agents.ts';
import { awake, hasPendingApproval, updateClocksAndRunState } from './waits.ts';

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
  await updateClocksAndRunState(trx, key, at);
}

/**
 * Resumes an agent and its run at `at` after the decision on a call; a paused or halted agent is parked instead. An
 * agent that has ended, has another pending approval, or already waits for something else is unchanged: the response to
 * the signal may be late, and the agent may have acted in the meantime.
 */
export async function wakeAgent(
  trx: SupervisorTransaction,
  { callId, ...key }: CallKey,
  at: Date,
): Promise<void> {
  const agent = await loadAgent(trx, key);
  if (agent.ended_at !== null || waitsForOther(agent.waiting_for, `approval:${callId}`)) return;
  if (await hasPendingApproval(trx, key)) return;
  const columns = await awake(trx, agent, at);
  await saveAgent(trx, key, { ...columns, waiting_since: null, waiting_for: null });
  await updateClocksAndRunState(trx, key, at);
}
