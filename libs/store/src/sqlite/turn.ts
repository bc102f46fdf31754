import type { BatchWork, CommitBatch, WorkState } from './commit-batch.ts';

/**
 * The kind of a turn: an urgent transaction, a transaction that a request waits for, a background transaction, a
 * background transaction with relaxed durability, or a read.
 */
export type TurnKind = 'urgent' | 'foreground' | 'background' | 'relaxed' | 'read';

/** One transaction, or one read of an in-memory database, first queued and then run on the writing connection. */
export class Turn implements BatchWork {
  readonly kind: TurnKind;
  readonly caller: unknown;
  state: WorkState = 'new';
  savepoint = false;
  writesBefore = 0;
  readonly #started = Promise.withResolvers<Turn>();
  readonly #ended = Promise.withResolvers<void>();
  #batch: CommitBatch | undefined;

  /** Monotonic time until which the transaction may wait for another one with which to share the commit, ms. */
  readonly dueAt: number;

  /** @param caller the value that the commit observer returned for the caller */
  constructor(kind: TurnKind, caller?: unknown, dueAt = 0) {
    this.kind = kind;
    this.dueAt = dueAt;
    this.caller = caller;
  }

  get background(): boolean {
    return this.kind === 'background' || this.kind === 'relaxed';
  }

  /** Resolves with this turn when it begins. */
  get started(): Promise<Turn> {
    return this.#started.promise;
  }

  /** Begins the turn; resolves when it has ended. */
  async run(batch: CommitBatch): Promise<void> {
    this.#batch = batch;
    this.#started.resolve(this);
    await this.#ended.promise;
  }

  begin(): void {
    this.#batch?.begin(this);
  }

  /**
   * Ends the turn and keeps its changes; resolves after the shared commit, which is durable unless all transactions of
   * the batch are `relaxed`.
   */
  finish(): Promise<void> {
    const durable = this.#batch?.finish(this);
    this.#ended.resolve();
    return durable ?? Promise.resolve();
  }

  /** Ends the turn and rolls back unfinished work. Idempotent. */
  leave(): void {
    try {
      this.#batch?.rollBack(this);
    } finally {
      this.#ended.resolve();
    }
  }
}
