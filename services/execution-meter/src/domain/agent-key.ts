/** Identifies an agent of a run, and its tab. */
export interface AgentKey {
  readonly tenant: string;
  readonly runId: string;
  readonly agentInstance: string;
}

/** Returns the key of an agent as a string. */
export function agentText({ tenant, runId, agentInstance }: AgentKey): string {
  return `${tenant}/${runId}/${agentInstance}`;
}
