import { sha256Hex } from '@writ/kernel';
import type { HaltRow } from '../../store/halt/halts.ts';

/** What goes on record of a halt (SV-8): the reason, in somebody's own words, only by its digest. */
export function haltFacts(halt: HaltRow) {
  return {
    halt_id: halt.halt_id,
    scope: halt.scope,
    ordered_by: halt.ordered_by,
    ordered_for: halt.ordered_for,
    end_runs: halt.end_runs,
    reason_sha256: sha256Hex(halt.reason),
  };
}
