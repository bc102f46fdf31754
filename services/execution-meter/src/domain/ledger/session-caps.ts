import { type Caps, lowerCaps } from './amount.ts';
import type { Balance } from './balance.ts';

/**
 * The caps of a session that a further run sets: never above those that an earlier one set, and none while others
 * were set at run time (EM-3).
 */
export function sessionCapsAfter(
  { caps, capsSetBy }: Balance,
  opened: Caps | undefined,
): Caps | undefined {
  if (opened === undefined || capsSetBy !== undefined) return undefined;
  return lowerCaps(caps, opened);
}
