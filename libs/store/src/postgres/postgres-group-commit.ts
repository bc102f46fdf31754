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
 * Up to this number, waiting transactions use one session even if others are idle: BEGIN, flush and COMMIT together cost as
 * much as one transaction, so a few transactions in many sessions have a lower throughput.
 */
const MIN_BATCH = 4;

/** What a {@link PostgresGroupCommit} works with. */
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
  /** Resolves when its batch has ended; undefined while it is idle. */
  busy: Promise<void> | undefined;
  /** The locks of its batch. */
  locks: LockSet;
}

/**
 * Runs the write transactions of this process in order of arrival, urgent ones first, and commits waiting ones together.
 * Transactions whose locks conflict never overlap, in any process; the others use several sessions.
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

  /** Whether a session is open, or the last attempt to open one succeeded. */
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
   * @throws OverloadedError STORE_QUEUE_FULL; UnavailableError STORE_BUSY, STORE_UNREACHABLE
   */
  async enter(options: TransactionOptions): Promise<PostgresTurn> {
    const { label, limits, observer, scopeOf } = this.#options;
    const limit = limits.maxQueued;
    if (this.#waiting.length >= limit && options.urgent !== true) {
      throw new OverloadedError(
        'STORE_QUEUE_FULL',
        `The queue of ${label} is full: ${limit} transactions are waiting, the limit maxQueued. Try again later.`,
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
    // Transactions that arrive in the same turn of the event loop share the commit.
    this.#starting ??= nextEventLoopTurn().then(() => {
      this.#starting = undefined;
      this.#startBatches();
    });
  }

  /** Starts batches of waiting transactions as long as a session is idle. */
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

  /** Takes the transactions of the next batch from those that wait, so that other sessions get their share. */
  #nextBatch(idleSlots: number): PostgresTurn[] {
    const first = this.#waiting.findIndex(({ scope }) => scope === 'everything');
    // No transaction overtakes one that needs all locks; those behind it may join its batch.
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

  /** Whether a batch of this process waits for all locks or has them. */
  get #isExclusive(): boolean {
    return this.#slots.some(({ busy, locks }) => busy !== undefined && locks.covers('everything'));
  }

  /** The transactions that need not wait for a batch of this process or for an earlier transaction. */
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
      // Without a database the waiting transactions would fail after the same wait. If only the lock of a run was not
      // acquired, or another session is open, they would not.
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

  /** Whether a session is open, so that transactions can be served without another one. */
  get #hasSession(): boolean {
    return this.#slots.some(({ session }) => session?.broken === false);
  }

  /** Puts transactions that did not begin back before those that arrived later. */
  #putBack(turns: readonly PostgresTurn[]): void {
    const isUrgent = turns.some(({ urgent }) => urgent);
    const at = isUrgent ? 0 : this.#waiting.findLastIndex(({ urgent }) => urgent) + 1;
    this.#waiting.splice(at, 0, ...turns);
  }

  /** Serves the transactions of a batch, and those that arrive meanwhile and need no other lock. */
  async #serveBatch(
    { locks }: WriteSlot,
    batch: PostgresCommitBatch,
    turns: PostgresTurn[],
  ): Promise<void> {
    const started = performance.now();
    const { maxBatch, maxBatchMs } = this.#options.limits;
    for (let size = 0; size < maxBatch; size += 1) {
      // The locks of the whole batch are held already.
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

  /** The next waiting transaction for which `locks` suffice; it overtakes none with which it conflicts. */
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
