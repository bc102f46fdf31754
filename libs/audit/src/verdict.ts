/** What the supervisor signed: that a chain of so many records ends with this hash. */
export interface SignedHead {
  readonly tenant: string;
  /** Number of records, from the first. */
  readonly count: number;
  /** Of the last record; CHAIN_START when there is none. */
  readonly headHash: string;
  /** What the checkpoint before it covers; zero when it is the first. */
  readonly previousCount: number;
  /** Whether it was signed to end an export. */
  readonly closesExport: boolean;
  readonly signedAt: Date;
}

/**
 * Reads a signature with the public keys that the verifier trusts.
 * @throws UnauthenticatedError when it does not count; everything else that it throws means that it
 *   could not be told
 */
export type ReadHead = (signed: string) => Promise<SignedHead>;

/** What the export was asked for. */
export interface Expected {
  /** Whose chain; the one that the export names unless given. */
  readonly tenant?: string;
  /** The last record that the export leaves out on purpose; none unless given. */
  readonly after?: number;
  /** The head of an earlier export, which this one must go on from. */
  readonly earlier?: SignedHead;
}

/** An export in which everything fits. */
export interface SoundExport {
  readonly holds: true;
  readonly tenant: string;
  readonly records: number;
  readonly checkpoints: number;
  /** The signed head that ends it. */
  readonly head: SignedHead;
}

/** An export that was changed. */
export interface BrokenExport {
  readonly holds: false;
  /** Where the first broken place is, from 1. */
  readonly line: number;
  /** One sentence that says where and what. */
  readonly sentence: string;
}
