import type { HaltRow } from '../../store/halt/halts.ts';

/** What goes on record of a halt (SV-8). */
export function haltFacts(halt: HaltRow) {
  return {
    halt_id: halt.halt_id,
    scope: halt.scope,
    ordered_by: halt.ordered_by,
    ordered_for: halt.ordered_for,
    end_runs: halt.end_runs,
    reason: halt.reason,
  };
}
