import { DIMENSIONS } from '../../domain/ledger/amount.ts';
import type { Balance } from '../../domain/ledger/balance.ts';
import { isShared } from '../level-ids.ts';

/** Which slices of the shared levels a transaction reads and changes (EM-3, ADR 32). */
export interface SliceAccess {
  /** The slice of its run; the row of slice 0 is that of the level itself. */
  readonly slice: number;
  /**
   * `own`: transactions of other slices may be open, so it books to its slice only as far as grants permit. `all`: no
   * other transaction of the tenant is open, so it reads and divides all slices. `only`: there is one slice.
   */
  readonly reach: 'own' | 'all' | 'only';
  /** Percentages of a cap at which an event is due, in ascending order. */
  readonly percents: readonly number[];
}

/**
 * Rolls back a transaction that would have to read or change more than its own slice; it is repeated with access to all
 * slices, while no other transaction of the tenant is open.
 */
export class AllSlicesRequired extends Error {}

/**
 * Requires access to all slices when a shared level has a cap, because the result may depend on other slices than its own.
 * @param levels as the transaction has read them
 * @throws AllSlicesRequired
 */
export function requireAllSlices({ reach }: SliceAccess, levels: readonly Balance[]): void {
  if (reach !== 'own') return;
  const isCapped = levels.some(
    ({ level, caps }) => isShared(level) && DIMENSIONS.some((name) => caps[name] !== undefined),
  );
  if (isCapped) throw new AllSlicesRequired();
}
