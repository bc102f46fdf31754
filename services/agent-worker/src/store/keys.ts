/** One run of a tenant. */
export interface RunKey {
  readonly tenant: string;
  readonly runId: string;
}

/** One agent of a run. */
export interface AgentKey extends RunKey {
  readonly instance: string;
}

/** The columns that name a run. */
export function runColumns({ tenant, runId }: RunKey) {
  return { tenant, run_id: runId };
}

/** The columns that name an agent. */
export function agentColumns({ tenant, runId, instance }: AgentKey) {
  return { tenant, run_id: runId, instance };
}

/** The agent that a row is about. */
export function keyOf(row: { tenant: string; run_id: string; instance: string }): AgentKey {
  return { tenant: row.tenant, runId: row.run_id, instance: row.instance };
}
