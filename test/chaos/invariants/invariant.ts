import type { DistributedPlatform } from '@writ/testing/distributed';
import type { Load } from '../load/load.ts';

/** The final state of a chaos test, which the invariants are checked against. */
export interface Evidence {
  readonly platform: DistributedPlatform;
  readonly load: Load;
}

/** A property that must hold under any fault. */
export interface Invariant {
  /** One phrase, with SPEC ids. */
  readonly holds: string;
  /** One line with ids per violation; empty when the invariant holds. */
  readonly violations: (evidence: Evidence) => Promise<string[]>;
}
