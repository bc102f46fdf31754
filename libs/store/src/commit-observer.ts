/** A durable commit that wrote something. */
export interface ObservedCommit {
  /** The result of {@link CommitObserver.caller} for each transaction that wrote. */
  readonly callers: readonly unknown[];
  /** When the commit's first transaction started, before it waited for locks; `performance.now()` in ms. */
  readonly startedAt: number;
}

/** Observes the commits of a store; must not throw. */
export interface CommitObserver {
  /** Called in the async context of each caller of a transaction; the result is passed to `committed` in `callers`. */
  caller(): unknown;
  committed(commit: ObservedCommit): void;
  /** Called for each transaction that failed because the disk is full. */
  diskFull(): void;
}
