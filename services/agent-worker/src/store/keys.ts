import type { AgentKey, RunKey } from '@writ/kernel';

/** Returns the columns of a run key. */
export function runColumns({ tenant, runId }: RunKey) {
  return { tenant, run_id: runId };
}

/** Returns the columns of an agent key. */
export function agentColumns({ tenant, runId, instance }: AgentKey) {
  return { tenant, run_id: runId, instance };
}

/** Returns the agent key of a row. */
export function keyOf(row: { tenant: string; run_id: string; instance: string }): AgentKey {
  return { tenant: row.tenant, runId: row.run_id, instance: row.instance };
}
