import { setImmediate as nextEventLoopTurn } from 'node:timers/promises';
import { isWritError, OverloadedError } from '@writ/kernel';
import type { CommitObserver } from '../commit-observer.ts';
import type { GroupCommitLimits } from '../sqlite/group-commit.ts';
import type { TransactionOptions } from '../store.ts';
import type { Reconnect } from './lost-commit.ts';
import { PostgresCommitBatch } from './postgres-commit-batch.ts';
import type { PostgresSession } from './postgres-session.ts';
import { PostgresTurn } from './postgres-turn.ts';
import { LockSet, type WriteScope } from './write-locks.ts';

/**
 * Up to this number of waiting transactions share one session even if other sessions are idle: BEGIN, flush and COMMIT
 * cost as much as one transaction, so spreading a few transactions over several sessions lowers throughput.
 */
const MIN_BATCH = 4;

/** Options of {@link PostgresGroupCommit}. */
export interface PostgresGroupCommitOptions {
  readonly label: string;
  readonly connect: Reconnect;
  /** `writers` is the maximum number of sessions. */
  readonly limits: GroupCommitLimits & { readonly writers: number };
  /** The locks of a transaction. */
  readonly scopeOf: (options: TransactionOptions) => WriteScope;
  readonly observer?: CommitObserver | undefined;
}

/** One writing session, opened on demand. */
interface WriteSlot {
  session: PostgresSession | undefined;
  /** Resolves when the current batch has ended; undefined while the session is idle. */
  busy: Promise<void> | undefined;
  /** The locks of its batch. */
  locks: LockSet;
}

/**
 * Runs the write transactions of this process in order of arrival, urgent ones first, and commits waiting transactions
 * together. A transaction may overtake earlier ones whose locks do not conflict with its locks. Transactions with
 * conflicting locks never overlap, in any process; other transactions use several sessions.
 */
export class PostgresGroupCommit {
  readonly #options: PostgresGroupCommitOptions;
  readonly #waiting: PostgresTurn[] = [];
  readonly #slots: readonly WriteSlot[];
  #starting: Promise<void> | undefined;
  #reachable = true;
  #commits = 0;
  #backgroundCommits = 0;

  constructor(options: PostgresGroupCommitOptions) {
    this.#options = options;
    this.#slots = Array.from({ length: options.limits.writers }, () => ({
      session: undefined,
      busy: undefined,
      locks: new LockSet(),
    }));
  }

  /**
   * Whether the server counts as reachable: false if no session is open and the latest attempt to open one has failed
   * or is still in progress; true before the first attempt.
   */
  get reachable(): boolean {
    return this.#reachable || this.#hasSession;
  }

  get commits(): number {
    return this.#commits;
  }

  get backgroundCommits(): number {
    return this.#backgroundCommits;
  }

  /**
   * Queues a transaction and resolves when it begins; the caller must call `finish` or `leave`.
   * @throws OverloadedError STORE_QUEUE_FULL, unless the transaction is urgent; UnavailableError STORE_BUSY,
   *   STORE_UNREACHABLE
   */
  async enter(options: TransactionOptions): Promise<PostgresTurn> {
    const { label, limits, observer, scopeOf } = this.#options;
    const limit = limits.maxQueued;
    if (this.#waiting.length >= limit && options.urgent !== true) {
      throw new OverloadedError(
        'STORE_QUEUE_FULL',
        `The transaction queue of ${label} is full (maxQueued: ${limit}); retry later.`,
        { limit: String(limit) },
      );
    }
    const turn = new PostgresTurn(options, scopeOf(options), observer?.caller());
    if (turn.urgent) {
      const after = this.#waiting.findLastIndex((waiting) => waiting.urgent);
      this.#waiting.splice(after + 1, 0, turn);
    } else this.#waiting.push(turn);
    this.#startSoon();
    return await turn.started;
  }

  /** Resolves when no transaction is waiting or running. */
  async drained(): Promise<void> {
    for (;;) {
      const busy = this.#slots.map((slot) => slot.busy).filter((each) => each !== undefined);
      if (this.#starting !== undefined) busy.push(this.#starting);
      if (busy.length === 0) return;
      await Promise.all(busy);
    }
  }

  /** Closes the sessions; no transaction may be waiting. */
  async close(): Promise<void> {
    await Promise.all(this.#slots.map(({ session }) => session?.close()));
  }

  #startSoon(): void {
    // Starts batches in the next turn of the event loop, so that transactions that arrive in the same turn can share a
    // commit.
    this.#starting ??= nextEventLoopTurn().then(() => {
      this.#starting = undefined;
      this.#startBatches();
    });
  }

  /** Starts batches of waiting transactions while there are idle sessions. */
  #startBatches(): void {
    for (;;) {
      const idle = this.#slots.filter(({ busy }) => busy === undefined);
      const slot = idle.find(({ session }) => session?.broken === false) ?? idle[0];
      if (slot === undefined) return;
      const turns = this.#nextBatch(idle.length);
      if (turns.length === 0) return;
      slot.locks = new LockSet();
      for (const { scope } of turns) slot.locks.add(scope);
      slot.busy = this.#serve(slot, turns).finally(() => {
        slot.busy = undefined;
        if (this.#waiting.length > 0) this.#startSoon();
      });
    }
  }

  /**
   * Removes the transactions of the next batch from the queue and leaves a share of the queue to the other idle
   * sessions.
   */
  #nextBatch(idleSlots: number): PostgresTurn[] {
    const first = this.#waiting.findIndex(({ scope }) => scope === 'everything');
    // No transaction overtakes a transaction that needs the exclusive schema lock; transactions queued after it can
    // join its batch.
    if (first === 0) return this.#isExclusive ? [] : this.#waiting.splice(0, 1);
    const { maxBatch } = this.#options.limits;
    const considered = maxBatch * this.#slots.length;
    const free = this.#unblocked(
      this.#waiting.slice(0, first < 0 ? considered : Math.min(first, considered)),
    );
    const share = Math.min(maxBatch, Math.max(MIN_BATCH, Math.ceil(free.length / idleSlots)));
    const locks = new LockSet();
    const passed = new LockSet();
    const taken = new Set<PostgresTurn>();
    for (const turn of free) {
      const joins = taken.size < share || locks.covers(turn.scope);
      if (joins && taken.size < maxBatch && !passed.conflictsWith(turn.scope)) {
        locks.add(turn.scope);
        taken.add(turn);
      } else passed.add(turn.scope);
    }
    const rest = this.#waiting.filter((turn) => !taken.has(turn));
    this.#waiting.splice(0, this.#waiting.length, ...rest);
    return [...taken];
  }

  /** Whether a batch of this process waits for or holds the exclusive schema lock. */
  get #isExclusive(): boolean {
    return this.#slots.some(({ busy, locks }) => busy !== undefined && locks.covers('everything'));
  }

  /**
   * Returns the transactions that conflict with no running batch of this process and with no earlier one of `turns`
   * that must itself wait. The result may contain transactions that conflict with each other.
   */
  #unblocked(turns: readonly PostgresTurn[]): PostgresTurn[] {
    const held = this.#slots.filter(({ busy }) => busy !== undefined).map(({ locks }) => locks);
    const passed = new LockSet();
    return turns.filter(({ scope }) => {
      const isFree = ![...held, passed].some((locks) => locks.conflictsWith(scope));
      if (!isFree) passed.add(scope);
      return isFree;
    });
  }

  async #serve(slot: WriteSlot, turns: PostgresTurn[]): Promise<void> {
    const startedAt = performance.now();
    try {
      const batch = await this.#begin(slot);
      try {
        await this.#serveBatch(slot, batch, turns);
      } finally {
        this.#putBack(turns.splice(0));
        await this.#commit(batch, startedAt);
      }
    } catch (error) {
      // Also rejects the queued transactions if they would fail after the same wait: on STORE_BUSY, if this batch needs
      // the exclusive schema lock; on any other error, if no session is open.
      const isOwn = isBusy(error) ? !slot.locks.covers('everything') : this.#hasSession;
      const others = isOwn ? [] : this.#waiting.splice(0);
      for (const turn of [...turns, ...others]) turn.refuse(error);
    }
  }

  async #begin(slot: WriteSlot): Promise<PostgresCommitBatch> {
    const { connect } = this.#options;
    if (slot.session === undefined || slot.session.broken) {
      this.#reachable = false;
      slot.session = await connect();
      this.#reachable = true;
    }
    return await PostgresCommitBatch.begin(slot.session, connect, slot.locks);
  }

  /** Whether a session is open, so that transactions can run without opening another session. */
  get #hasSession(): boolean {
    return this.#slots.some(({ session }) => session?.broken === false);
  }

  /**
   * Puts transactions that have not begun back into the queue: at its front if one of them is urgent, otherwise after
   * the last urgent one that waits.
   */
  #putBack(turns: readonly PostgresTurn[]): void {
    const isUrgent = turns.some(({ urgent }) => urgent);
    const at = isUrgent ? 0 : this.#waiting.findLastIndex(({ urgent }) => urgent) + 1;
    this.#waiting.splice(at, 0, ...turns);
  }

  /**
   * Runs the transactions of a batch, then waiting transactions that need no further locks, including those that arrive
   * in the meantime.
   */
  async #serveBatch(
    { locks }: WriteSlot,
    batch: PostgresCommitBatch,
    turns: PostgresTurn[],
  ): Promise<void> {
    const started = performance.now();
    const { maxBatch, maxBatchMs } = this.#options.limits;
    for (let size = 0; size < maxBatch; size += 1) {
      // The session already holds the locks of the whole batch, so a few transactions run even after the time limit.
      const isLate = size >= MIN_BATCH && performance.now() - started > maxBatchMs;
      if (batch.over || isLate) return;
      const next = turns.shift() ?? this.#takeCovered(locks);
      if (next === undefined) return;
      if (!(await batch.serve(next))) {
        turns.unshift(next);
        return;
      }
    }
  }

  /**
   * Removes and returns the next waiting transaction that needs no locks beyond `locks` and does not overtake a
   * transaction with which it conflicts.
   */
  #takeCovered(locks: LockSet): PostgresTurn | undefined {
    const passed = new LockSet();
    for (const [index, turn] of this.#waiting.entries()) {
      if (locks.covers(turn.scope) && !passed.conflictsWith(turn.scope)) {
        this.#waiting.splice(index, 1);
        return turn;
      }
      if (turn.scope === 'everything') return undefined;
      passed.add(turn.scope);
    }
    return undefined;
  }

  async #commit(batch: PostgresCommitBatch, startedAt: number): Promise<void> {
    const kind = await batch.commit();
    if (kind === 'foreground') this.#commits += 1;
    if (kind === 'background') this.#backgroundCommits += 1;
    if (kind !== 'empty') this.#options.observer?.committed({ callers: batch.callers, startedAt });
  }
}

function isBusy(error: unknown): boolean {
  return isWritError(error) && error.reason === 'STORE_BUSY';
}
