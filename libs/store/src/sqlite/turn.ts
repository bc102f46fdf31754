import type { BatchWork, CommitBatch, WorkState } from './commit-batch.ts';

/**
 * What a turn is for: a transaction that a request waits for, one that none does, one of these that may
 * be undone by a loss of power, or a plain read.
 */
export type TurnKind = 'foreground' | 'background' | 'relaxed' | 'read';

/** One holder's time at the writing connection, from being let in to letting go. */
export class Turn implements BatchWork {
  readonly kind: TurnKind;
  readonly caller: unknown;
  state: WorkState = 'new';
  savepoint = false;
  writesBefore = 0;
  readonly #started = Promise.withResolvers<Turn>();
  readonly #ended = Promise.withResolvers<void>();
  #batch: CommitBatch | undefined;

  /** @param caller what the observer of commits said of whoever asked */
  constructor(kind: TurnKind, caller?: unknown) {
    this.kind = kind;
    this.caller = caller;
  }

  get background(): boolean {
    return this.kind === 'background' || this.kind === 'relaxed';
  }

  /** Resolves with this turn when it is let in. */
  get started(): Promise<Turn> {
    return this.#started.promise;
  }

  /** Lets the holder in; resolves when it has let go. */
  async run(batch: CommitBatch): Promise<void> {
    this.#batch = batch;
    this.#started.resolve(this);
    await this.#ended.promise;
  }

  begin(): void {
    this.#batch?.begin(this);
  }

  /** Keeps what was done and lets go at once; resolves when it is durable. */
  finish(): Promise<void> {
    const durable = this.#batch?.finish(this);
    this.#ended.resolve();
    return durable ?? Promise.resolve();
  }

  /** Undoes what was not finished and lets go; harmless when that has happened already. */
  leave(): void {
    try {
      this.#batch?.undo(this);
    } finally {
      this.#ended.resolve();
    }
  }
}
