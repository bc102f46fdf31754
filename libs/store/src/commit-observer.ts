/** A commit that changed something and is durable. */
export interface ObservedCommit {
  /** What {@link CommitObserver.caller} said of each transaction in it that wrote. */
  readonly callers: readonly unknown[];
  /** When its first statement was sent, milliseconds since the epoch. */
  readonly startedAt: number;
}

/** Watches a store commit; nothing of it may throw. A store without one spends nothing on it. */
export interface CommitObserver {
  /** Who asks for a transaction now, in its asynchronous context; handed back with the commit. */
  caller(): unknown;
  committed(commit: ObservedCommit): void;
}
