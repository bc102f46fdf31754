import { type Caps, DIMENSIONS, type Dimension } from './amount.ts';
import type { Balance } from './balance.ts';

/**
 * Returns the remaining budget for reservations: the minimum of all levels by dimension, never
 * negative. A dimension without caps is absent (EM-3).
 */
export function roomOf(balances: readonly Balance[]): Caps {
  const room: Partial<Record<Dimension, bigint>> = {};
  for (const { caps, used, reserved } of balances) {
    for (const dimension of DIMENSIONS) {
      const cap = caps[dimension];
      if (cap === undefined) continue;
      const rest = cap - used[dimension] - reserved[dimension];
      const least = room[dimension];
      if (least === undefined || rest < least) room[dimension] = rest > 0n ? rest : 0n;
    }
  }
  return room;
}
