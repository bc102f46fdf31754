import { budgetFromJson } from '../../domain/manifest/manifest-json.ts';
import type { RunRow } from '../run/runs.ts';
import type { SupervisorReader } from '../supervisor-store.ts';
import type { AgentRow } from './agents.ts';

/**
 * Returns the deadline that the budget of the agent sets, null when the budget sets none. It counts from the creation
 * of the run, so it includes the time before the run starts.
 */
export function ownDeadline(
  { created_at: start }: Pick<RunRow, 'created_at'>,
  agent: Pick<AgentRow, 'execution_budget'>,
): Date | null {
  const { deadlineMs } = budgetFromJson(agent.execution_budget);
  return deadlineMs === undefined ? null : new Date(start.getTime() + deadlineMs);
}

/**
 * Returns the earlier of the deadline of the run and the deadline that the budget of the agent sets; null when neither
 * is set (EM-1).
 */
export function deadlineOf(run: RunRow, agent: Pick<AgentRow, 'execution_budget'>): Date | null {
  const ofRun = run.deadline_at;
  const own = ownDeadline(run, agent);
  if (own === null || (ofRun !== null && ofRun < own)) return ofRun;
  return own;
}

/** Live agents below the root past their own deadline, of all tenants. */
export async function overdueAgents(db: SupervisorReader, now: Date): Promise<AgentRow[]> {
  return await db
    .selectFrom('agents')
    .selectAll()
    .where('deadline_at', '<=', now)
    .where('ended_at', 'is', null)
    .orderBy('deadline_at')
    .execute();
}
