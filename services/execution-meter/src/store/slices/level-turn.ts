import { DIMENSIONS } from '../../domain/ledger/amount.ts';
import type { Balance } from '../../domain/ledger/balance.ts';
import { isShared } from '../level-ids.ts';

/**
 * How a transaction may book to the shared levels, each of which is divided into slices (EM-3, ADR 32). A turn is the
 * time during which a transaction holds its locks; it is unrelated to the budget dimension `turns`, which counts round
 * trips to a model.
 */
export interface LevelTurn {
  /** The slice of its run; the row of slice 0 is that of the level itself. */
  readonly slice: number;
  /**
   * `own`: transactions of other slices may be open, so it books to its slice only as far as grants permit. `all`, an
   * exact turn: no other transaction of the tenant is open, so it reads and divides all slices. `only`: there is one
   * slice.
   */
  readonly reach: 'own' | 'all' | 'only';
  /** Percentages of a cap at which an event is due, in ascending order. */
  readonly percents: readonly number[];
}

/**
 * Rolls back a transaction that would have to read or change more than its own slice; it is repeated while no other
 * transaction of the tenant is open.
 */
export class ExactTurnRequired extends Error {}

/**
 * Requires an exact turn when a shared level has a cap, because the result may depend on other slices than its own.
 * @param levels as the transaction has read them
 * @throws ExactTurnRequired
 */
export function requireExactTurn({ reach }: LevelTurn, levels: readonly Balance[]): void {
  if (reach !== 'own') return;
  const isCapped = levels.some(
    ({ level, caps }) => isShared(level) && DIMENSIONS.some((name) => caps[name] !== undefined),
  );
  if (isCapped) throw new ExactTurnRequired();
}
