import { budgetFromJson } from '../../domain/manifest/manifest-json.ts';
import type { RunRow } from '../run/runs.ts';
import type { SupervisorReader } from '../supervisor-store.ts';
import type { AgentRow } from './agents.ts';

/** When an agent must be over by its own budget, which counts from the start of the run; null when it need not. */
export function ownDeadline(
  { created_at: start }: Pick<RunRow, 'created_at'>,
  agent: Pick<AgentRow, 'execution_budget'>,
): Date | null {
  const { deadlineMs } = budgetFromJson(agent.execution_budget);
  return deadlineMs === undefined ? null : new Date(start.getTime() + deadlineMs);
}

/** When an agent must be over: with its run, or earlier by its own budget; null when it need not (EM-1). */
export function deadlineOf(run: RunRow, agent: Pick<AgentRow, 'execution_budget'>): Date | null {
  const ofRun = run.deadline_at;
  const own = ownDeadline(run, agent);
  if (own === null || (ofRun !== null && ofRun < own)) return ofRun;
  return own;
}

/** Agents below the root that live past their own deadline, of every tenant. */
export async function overdueAgents(db: SupervisorReader, now: Date): Promise<AgentRow[]> {
  return await db
    .selectFrom('agents')
    .selectAll()
    .where('deadline_at', '<=', now)
    .where('ended_at', 'is', null)
    .orderBy('deadline_at')
    .execute();
}
