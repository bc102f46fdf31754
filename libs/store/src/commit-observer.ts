/** A durable commit that wrote something. */
export interface ObservedCommit {
  /** The result of {@link CommitObserver.caller} for each transaction that wrote. */
  readonly callers: readonly unknown[];
  /** When the commit's first transaction was started, before its wait for locks; ms of `performance.now()`. */
  readonly startedAt: number;
}

/** Observes the commits of a store; must not throw. */
export interface CommitObserver {
  /** Called in the context of each transaction request; the result is returned with the commit. */
  caller(): unknown;
  committed(commit: ObservedCommit): void;
  /** Called for each transaction that failed because the disk is full. */
  diskFull(): void;
}
