import type { AgentKey } from '@writ/kernel';
import { seen, stopped } from '../../domain/clock/active-clock.ts';
import { haltOver } from '../halt/halts.ts';
import { loadRun, setRunState } from '../run/runs.ts';
import type { SupervisorTransaction } from '../supervisor-store.ts';
import { agentsOf, clockColumns, clockOf, loadAgent, saveAgent } from './agents.ts';

/**
 * Suspends an agent at `at`: its clock stops (EM-1). The run becomes SUSPENDED when no agent of it is running.
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
  const run = await loadRun(trx, key);
  const agents = await agentsOf(trx, key);
  const runs = agents.some((other) => other.state === 'RUNNING');
  if (run.state === 'RUNNING' && !runs) await setRunState(trx, key, 'SUSPENDED');
}

/**
 * Resumes an agent at `at`, and its run; a paused or halted agent is parked instead. An agent that has ended, or
 * has another pending approval, stays as it is.
 */
export async function wakeAgent(
  trx: SupervisorTransaction,
  key: AgentKey,
  at: Date,
): Promise<void> {
  const agent = await loadAgent(trx, key);
  if (agent.ended_at !== null || (await hasPendingApproval(trx, key))) return;
  if (agent.paused_since !== null || (await haltOver(trx, key)) !== undefined) {
    await saveAgent(trx, key, { state: 'PARKED', waiting_since: null });
    return;
  }
  await saveAgent(trx, key, {
    ...clockColumns(seen(clockOf(agent), at)),
    state: 'RUNNING',
    waiting_since: null,
  });
  const run = await loadRun(trx, key);
  if (run.state === 'SUSPENDED') await setRunState(trx, key, 'RUNNING');
}

async function hasPendingApproval(trx: SupervisorTransaction, key: AgentKey): Promise<boolean> {
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
