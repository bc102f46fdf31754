import { type Caps, lowerCaps } from './amount.ts';
import type { Balance } from './balance.ts';

/**
 * Returns the caps of a session after a run of the session was opened with the session caps `opened`: in each dimension
 * the lower of both caps. Undefined when they do not change, because the run sets no caps or the session has caps that
 * were set at run time (EM-3).
 */
export function sessionCapsAfter(
  { caps, capsSetBy }: Balance,
  opened: Caps | undefined,
): Caps | undefined {
  if (opened === undefined || capsSetBy !== undefined) return undefined;
  return lowerCaps(caps, opened);
}
