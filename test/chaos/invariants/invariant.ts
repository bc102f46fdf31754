import type { DistributedPlatform } from '@writ/testing/distributed';
import type { Load } from '../load/load.ts';

/** What is left when everything is over, to be judged. */
export interface Evidence {
  readonly platform: DistributedPlatform;
  readonly load: Load;
}

/** Something that holds whatever fails. */
export interface Invariant {
  /** One phrase, with SPEC ids. */
  readonly holds: string;
  /** Whatever breaks it, one line with ids each; empty when it holds. */
  readonly violations: (evidence: Evidence) => Promise<string[]>;
}
