import type { RunKey } from '@writ/kernel';
import type { Transaction } from 'kysely';
import type { StoredRunState } from '../schema/run.ts';
import type { SupervisorDatabase } from '../schema.ts';

/** The state that a transaction gave to a run. */
export interface NotedRunState extends RunKey {
  readonly state: StoredRunState;
}

const noted = new WeakMap<object, NotedRunState[]>();

/** Adds to {@link notedRunStates} of `trx`. */
export function noteRunState(
  trx: Transaction<SupervisorDatabase>,
  { tenant, runId }: RunKey,
  state: StoredRunState,
): void {
  const states = noted.get(trx) ?? [];
  noted.set(trx, states);
  states.push({ tenant, runId, state });
}

/** The states that a transaction gave to runs, in order, to be handed over once it is committed (CO-1). */
export function notedRunStates(trx: Transaction<SupervisorDatabase>): readonly NotedRunState[] {
  return noted.get(trx) ?? [];
}
