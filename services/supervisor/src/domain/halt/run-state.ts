/** An agent as far as its run's state is concerned. */
export interface LivingAgent {
  readonly state: string;
  readonly isHalted: boolean;
}

/**
 * Where a run stands whose root lives: PARKED when a halt covers every agent that lives, else RUNNING
 * while one of them runs, else SUSPENDED (AG-7, SV-9).
 */
export function livingRunState(agents: readonly LivingAgent[]): 'RUNNING' | 'SUSPENDED' | 'PARKED' {
  if (agents.length > 0 && agents.every(({ isHalted }) => isHalted)) return 'PARKED';
  return agents.some(({ state, isHalted }) => state === 'RUNNING' && !isHalted)
    ? 'RUNNING'
    : 'SUSPENDED';
}
