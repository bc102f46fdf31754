/** The state of an agent that determines the state of its run. */
export interface LiveAgent {
  readonly state: string;
  readonly isHalted: boolean;
  /** Whether it asked a person a question and waits for the answer. */
  readonly waitsForInput: boolean;
}

/**
 * The state of a run whose root is alive: PARKED when a halt covers all live agents, else RUNNING while one of them
 * runs, else WAITING_FOR_INPUT while one of them waits for the answer of a person, else SUSPENDED (AG-7, SV-9).
 */
export function liveRunState(
  agents: readonly LiveAgent[],
): 'RUNNING' | 'WAITING_FOR_INPUT' | 'SUSPENDED' | 'PARKED' {
  if (agents.length > 0 && agents.every(({ isHalted }) => isHalted)) return 'PARKED';
  const free = agents.filter(({ isHalted }) => !isHalted);
  if (free.some(({ state }) => state === 'RUNNING')) return 'RUNNING';
  return free.some(({ waitsForInput }) => waitsForInput) ? 'WAITING_FOR_INPUT' : 'SUSPENDED';
}
