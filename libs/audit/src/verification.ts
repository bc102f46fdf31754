/** The signed statement that a chain of `count` records ends with `headHash`. */
export interface SignedHead {
  readonly tenant: string;
  /** Number of records, from the first. */
  readonly count: number;
  /** Hash of the last record; CHAIN_START for an empty chain. */
  readonly headHash: string;
  /** The record count of the previous checkpoint; zero for the first. */
  readonly previousCount: number;
  /**
   * The number of this checkpoint; in a head, the number of the last checkpoint. Zero if the release that signed it did
   * not number checkpoints.
   */
  readonly checkpointNumber: number;
  /** Whether this is the head of an export; false for a checkpoint. */
  readonly closesExport: boolean;
  readonly signedAt: Date;
}

/**
 * Verifies a signature with the public keys that the verifier trusts.
 * @throws UnauthenticatedError when the signature is invalid; any other error means that the signature could not be
 *   checked
 */
export type ReadHead = (signed: string) => Promise<SignedHead>;

/** The cryptographic functions of a verification, which Node and browsers implement differently. */
export interface ExportCrypto {
  /** Verifies the signatures of checkpoints and head. */
  readonly readHead: ReadHead;
  /** Returns the SHA-256 of the UTF-8 of a text, as 64 lower-case hex digits. */
  readonly sha256: (text: string) => string | Promise<string>;
}

/** The expected content of an export. */
export interface Expected {
  /** The tenant of the chain. Default: the tenant of `earlier`, or of the export if `earlier` is not set. */
  readonly tenant?: string;
  /** The number of the record before the first one of a partial export. Default: 0. */
  readonly after?: number;
  /** The head of an earlier export, which this one must continue. */
  readonly earlier?: SignedHead;
  /**
   * The last published checkpoint of each tenant; the chain must contain the checkpoint of its tenant. For a partial
   * export that starts after this checkpoint, only the numbers of records and checkpoints are compared.
   */
  readonly published?: ReadonlyMap<string, SignedHead>;
}

/** A valid export. */
export interface ValidExport {
  readonly holds: true;
  readonly tenant: string;
  readonly records: number;
  readonly checkpoints: number;
  /** The signed head that ends the export. */
  readonly head: SignedHead;
}

/** An invalid export. */
export interface InvalidExport {
  readonly holds: false;
  /** Line of the first problem, from 1. */
  readonly line: number;
  /** One sentence that describes the problem. */
  readonly sentence: string;
}
