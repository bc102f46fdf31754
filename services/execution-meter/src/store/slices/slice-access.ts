import { DIMENSIONS } from '../../domain/ledger/amount.ts';
import type { Balance } from '../../domain/ledger/balance.ts';
import { isShared } from '../level-ids.ts';

/** Which slices of the shared levels a transaction reads and changes (EM-3, ADR 32). */
export interface SliceAccess {
  /** The slice that the run books to; slice 0 is stored in the row of the level itself. */
  readonly slice: number;
  /**
   * `own`: transactions of other slices may be open, so the transaction books only to its own slice and only within its
   * grants. `all`: no other transaction of the tenant is open, so the transaction reads all slices and divides the caps
   * among them. `only`: there is one slice.
   */
  readonly reach: 'own' | 'all' | 'only';
  /** Percentages of a cap at which an event is published, in ascending order. */
  readonly percents: readonly number[];
}

/**
 * Thrown to roll back a transaction that needs more than its own slice. The transaction is then repeated with access to
 * all slices, while no other transaction of the tenant is open.
 */
export class AllSlicesRequired extends Error {}

/**
 * Requires access to all slices when a shared level has a cap, because the result may depend on other slices.
 * @param levels the levels as the transaction has read them
 * @throws AllSlicesRequired
 */
export function requireAllSlices({ reach }: SliceAccess, levels: readonly Balance[]): void {
  if (reach !== 'own') return;
  const isCapped = levels.some(
    ({ level, caps }) => isShared(level) && DIMENSIONS.some((name) => caps[name] !== undefined),
  );
  if (isCapped) throw new AllSlicesRequired();
}
