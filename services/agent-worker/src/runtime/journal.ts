import { InternalError } from '@writ/kernel';
import { type Decision, withoutWrit } from '../domain/calls/decision.ts';
import {
  assertAllReplayed,
  assertSameOperation,
  assertSamePrologue,
  callIdOf,
  type JournalEntry,
  type Operation,
  type Place,
} from '../domain/journal/entry.ts';
import type { SegmentEntry } from '../store/journal.ts';

/** An operation of a service that a peer knows by its call_id. */
export interface NumberedCall extends Pick<Place, 'branch' | 'position'> {
  readonly callId: string;
}

/** The operations of one branch, in order. Branches side by side do not number each other's. */
export class BranchCursor {
  readonly branch: string;
  #next = 0;

  constructor(branch: string) {
    this.branch = branch;
  }

  /** Numbers the next operation. Calls must come in the same order whenever the agent runs again. */
  next(): NumberedCall {
    const place = { branch: this.branch, position: this.#next };
    this.#next += 1;
    return { ...place, callId: callIdOf(place) };
  }

  /** Operations so far. */
  get asked(): number {
    return this.#next;
  }

  /** Goes on as if `asked` operations had been asked for. */
  skipTo(asked: number): void {
    this.#next = asked;
  }
}

/** The place of a checkpoint in a journal. */
export interface FoldedAt {
  /** The segment that begins there. */
  readonly segment: number;
  /** Operations of the agent itself before it takes its state back: those are always replayed. */
  readonly prologue: number;
  /** Operations of the agent itself before the checkpoint. */
  readonly position: number;
}

/** What a journal begins with. */
export interface JournalParts {
  /** The agent's instance. */
  readonly agent: string;
  readonly entries: readonly JournalEntry[];
  /** Entries that were ever committed. */
  readonly length: number;
  /** The latest checkpoint. */
  readonly foldedAt: FoldedAt | undefined;
}

/**
 * An agent's journal while it runs: what is recorded is given back, what is new is kept until it is
 * committed (RT-1).
 */
export class Journal {
  readonly #agent: string;
  readonly #recorded: Map<string, JournalEntry>;
  readonly #pending: SegmentEntry[] = [];
  readonly #cursors = new Map<string, BranchCursor>();
  readonly #foldedAt: FoldedAt | undefined;
  #segment = 0;
  #prologue: number | undefined;
  #length: number;
  #isVolatile = false;

  constructor({ agent, entries, length, foldedAt }: JournalParts) {
    this.#agent = agent;
    this.#recorded = new Map(entries.map((entry) => [key(entry), entry]));
    this.#length = length;
    this.#foldedAt = foldedAt;
  }

  /** Begins a branch; the empty one is the agent itself. */
  cursor(branch: string): BranchCursor {
    const cursor = new BranchCursor(branch);
    this.#cursors.set(branch, cursor);
    return cursor;
  }

  /**
   * The entry of an operation that was done before; undefined when it is news.
   * @throws DataLossError JOURNAL_DIVERGENCE when something else was done there
   */
  recall(operation: Operation): JournalEntry | undefined {
    if (this.#foldedAt !== undefined && this.#prologue === undefined && operation.branch === '') {
      const { prologue } = this.#foldedAt;
      assertSamePrologue(prologue, operation.position, this.#agent, operation);
    }
    const recorded = this.#recorded.get(key(operation));
    if (recorded !== undefined) assertSameOperation(recorded, operation, this.#agent);
    return recorded;
  }

  /**
   * Keeps what an operation came to.
   * @param isVolatile whether it would come out otherwise when done again, so that nothing may be
   *   built on it before it is committed
   */
  record(entry: JournalEntry, isVolatile: boolean): void {
    this.#pending.push({ ...entry, segment: this.#segment });
    this.#isVolatile ||= isVolatile;
  }

  /** Drops the writ of a decision that is not committed yet: it is large and secret, and spent. */
  dropWrit(review: Place): void {
    const index = this.#pending.findIndex((entry) => key(entry) === key(review));
    const entry = this.#pending[index];
    if (entry === undefined) return;
    this.#pending[index] = { ...entry, value: withoutWrit(entry.value as Decision) };
  }

  /** Whether something would come out otherwise when done again. */
  get isVolatile(): boolean {
    return this.#isVolatile;
  }

  /** What is not committed yet. */
  get pending(): readonly SegmentEntry[] {
    return [...this.#pending];
  }

  /** Entries, those not committed included. */
  get length(): number {
    return this.#length + this.#pending.length;
  }

  /** The first `count` entries of `pending` are committed. */
  committed(count: number): void {
    this.#pending.splice(0, count);
    this.#length += count;
    if (this.#pending.length === 0) this.#isVolatile = false;
  }

  /**
   * Goes to the latest checkpoint; without one it goes on as it is.
   * @throws DataLossError JOURNAL_DIVERGENCE when that is done at another place than before
   */
  restore(cursor: BranchCursor): void {
    this.#prologue = cursor.asked;
    this.#segment = this.#foldedAt?.segment ?? 1;
    if (this.#foldedAt === undefined) return;
    assertSamePrologue(this.#foldedAt.prologue, cursor.asked, this.#agent);
    cursor.skipTo(this.#foldedAt.position);
  }

  /**
   * Begins the next segment: what was recorded before is not asked for again.
   * @throws DataLossError JOURNAL_DIVERGENCE when something of it was not asked for; InternalError when
   *   the agent never asked where to go on
   */
  fold(cursor: BranchCursor): FoldedAt {
    if (this.#prologue === undefined) {
      throw new InternalError(
        'CHECKPOINT_UNEXPECTED',
        `${this.#agent} takes a checkpoint, but did not ask for the one before.`,
        { agent: this.#agent },
      );
    }
    this.assertComplete();
    this.#recorded.clear();
    for (const branch of this.#cursors.keys()) if (branch !== '') this.#cursors.delete(branch);
    this.#segment += 1;
    return { segment: this.#segment, prologue: this.#prologue, position: cursor.asked };
  }

  /** @throws DataLossError JOURNAL_DIVERGENCE when the agent has left out something that is recorded */
  assertComplete(): void {
    const asked = (branch: string) => this.#cursors.get(branch)?.asked ?? 0;
    assertAllReplayed(this.#recorded.values(), asked, this.#agent);
  }
}

function key({ branch, position, part }: Place): string {
  return `${branch}/${position}.${part}`;
}
