/** The state of an agent that determines the state of its run. */
export interface LivingAgent {
  readonly state: string;
  readonly isHalted: boolean;
}

/**
 * The state of a run whose root is alive: PARKED when a halt covers all live agents, else RUNNING while one of them
 * runs, else SUSPENDED (AG-7, SV-9).
 */
export function livingRunState(agents: readonly LivingAgent[]): 'RUNNING' | 'SUSPENDED' | 'PARKED' {
  if (agents.length > 0 && agents.every(({ isHalted }) => isHalted)) return 'PARKED';
  return agents.some(({ state, isHalted }) => state === 'RUNNING' && !isHalted)
    ? 'RUNNING'
    : 'SUSPENDED';
}
