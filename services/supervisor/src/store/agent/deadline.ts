import { budgetFromJson } from '../../domain/manifest/manifest-json.ts';
import type { RunRow } from '../run/runs.ts';
import type { AgentRow } from './agents.ts';

/** When an agent must be over: with its run, or earlier by its own budget; null when it need not (EM-1). */
export function deadlineOf(
  { created_at: start, deadline_at: ofRun }: RunRow,
  agent: Pick<AgentRow, 'execution_budget'>,
): Date | null {
  const { deadlineMs } = budgetFromJson(agent.execution_budget);
  if (deadlineMs === undefined) return ofRun;
  const own = new Date(start.getTime() + deadlineMs);
  return ofRun !== null && ofRun < own ? ofRun : own;
}
