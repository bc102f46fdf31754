import { InternalError, isWritError } from '@writ/kernel';
import { type Decision, withoutWrit } from '../../domain/calls/decision.ts';
import {
  assertAllReplayed,
  assertSameOperation,
  assertSamePrologue,
  callIdOf,
  isProposalAfter,
  type JournalEntry,
  type Operation,
  type Place,
} from '../../domain/journal/entry.ts';
import type { SegmentEntry } from '../../store/journal.ts';
import { CodeMismatched } from '../unwinding.ts';

/** The position of an operation and its call_id, which identifies it at other services. */
export interface NumberedCall extends Pick<Place, 'branch' | 'position'> {
  readonly callId: string;
}

/** Numbers the operations of one branch; concurrent branches have separate counters. */
export class BranchCursor {
  readonly branch: string;
  #next = 0;

  constructor(branch: string) {
    this.branch = branch;
  }

  /** Numbers the next operation. The order of calls must be the same in every replay. */
  next(): NumberedCall {
    const place = { branch: this.branch, position: this.#next };
    this.#next += 1;
    return { ...place, callId: callIdOf(place) };
  }

  /**
   * Number of operations that the branch has requested under this lease, including those before a restored checkpoint.
   */
  get asked(): number {
    return this.#next;
  }

  /** Continues after `asked` operations. */
  skipTo(asked: number): void {
    this.#next = asked;
  }
}

/** Position of a checkpoint in a journal. */
export interface FoldedAt {
  /** The segment that starts at the checkpoint. */
  readonly segment: number;
  /**
   * Number of the agent's own operations before it restored its state; these are replayed each
   * time.
   */
  readonly prologue: number;
  /** Number of the agent's own operations before the checkpoint. */
  readonly position: number;
}

/** Initial content of a journal. */
export interface JournalParts {
  /** The agent's instance. */
  readonly agent: string;
  readonly entries: readonly JournalEntry[];
  /** Number of committed entries. */
  readonly length: number;
  /** The latest checkpoint. */
  readonly foldedAt: FoldedAt | undefined;
}

/**
 * An agent's journal during one lease: returns recorded entries and keeps new entries until they are committed (RT-1).
 */
export class Journal {
  readonly #agent: string;
  readonly #recorded: Map<string, JournalEntry>;
  readonly #replayed = new Set<string>();
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

  /** Creates the cursor of a branch; the empty branch is the agent itself. */
  cursor(branch: string): BranchCursor {
    const cursor = new BranchCursor(branch);
    this.#cursors.set(branch, cursor);
    return cursor;
  }

  /**
   * Returns the recorded entry of an operation, or undefined when the operation is new.
   * @throws CodeMismatched when a different operation is recorded at its position
   */
  recall(operation: Operation): JournalEntry | undefined {
    if (this.#foldedAt !== undefined && this.#prologue === undefined && operation.branch === '') {
      const { prologue } = this.#foldedAt;
      assertSame(() => assertSamePrologue(prologue, operation.position, this.#agent, operation));
    }
    const recorded = this.#recorded.get(key(operation));
    if (recorded === undefined) return undefined;
    assertSame(() => assertSameOperation(recorded, operation, this.#agent));
    this.#replayed.add(key(operation));
    return recorded;
  }

  /**
   * Adds the result of an operation.
   * @param isVolatile whether a repeat could have another result, so that the entry must be
   *   committed before any effect depends on it
   */
  record(entry: JournalEntry, isVolatile: boolean): void {
    this.#pending.push({ ...entry, segment: this.#segment });
    this.#isVolatile ||= isVolatile;
  }

  /** Removes the writ from an uncommitted decision: it is large, secret and no longer needed. */
  dropWrit(review: Place): void {
    const index = this.#pending.findIndex((entry) => key(entry) === key(review));
    const entry = this.#pending[index];
    if (entry === undefined) return;
    this.#pending[index] = { ...entry, value: withoutWrit(entry.value as Decision) };
  }

  /** Removes all uncommitted entries. */
  discardPending(): void {
    this.#pending.length = 0;
    this.#isVolatile = false;
  }

  /** Whether the journal contains recorded entries that the agent has not requested yet. */
  get isReplaying(): boolean {
    return this.#replayed.size < this.#recorded.size;
  }

  /** Whether a recorded proposal comes after the operations that a branch, or a branch of it, has requested. */
  hasProposalAfter({ branch, asked }: BranchCursor): boolean {
    return this.#recorded.values().some((entry) => isProposalAfter(entry, branch, asked));
  }

  /** Whether an uncommitted entry is volatile. */
  get isVolatile(): boolean {
    return this.#isVolatile;
  }

  /** Entries that are not committed yet. */
  get pending(): readonly SegmentEntry[] {
    return [...this.#pending];
  }

  /** Number of entries, including uncommitted ones. */
  get length(): number {
    return this.#length + this.#pending.length;
  }

  /** Marks the first `count` entries of `pending` as committed. */
  committed(count: number): void {
    this.#pending.splice(0, count);
    this.#length += count;
    if (this.#pending.length === 0) this.#isVolatile = false;
  }

  /**
   * Continues at the latest checkpoint, if there is one.
   * @throws CodeMismatched when the agent called restore at another position before it saved the checkpoint
   */
  restore(cursor: BranchCursor): void {
    this.#prologue = cursor.asked;
    this.#segment = this.#foldedAt?.segment ?? 1;
    if (this.#foldedAt === undefined) return;
    const { prologue, position } = this.#foldedAt;
    assertSame(() => assertSamePrologue(prologue, cursor.asked, this.#agent));
    cursor.skipTo(position);
  }

  /**
   * Starts the next segment; earlier entries are not replayed again.
   * @throws CodeMismatched when a recorded operation was not requested;
   *   InternalError when the agent never called restore
   */
  fold(cursor: BranchCursor): FoldedAt {
    if (this.#prologue === undefined) {
      throw new InternalError(
        'CHECKPOINT_UNEXPECTED',
        `${this.#agent} saved a checkpoint before it called restore.`,
        { agent: this.#agent },
      );
    }
    this.assertComplete();
    this.#recorded.clear();
    this.#replayed.clear();
    for (const branch of this.#cursors.keys()) if (branch !== '') this.#cursors.delete(branch);
    this.#segment += 1;
    return { segment: this.#segment, prologue: this.#prologue, position: cursor.asked };
  }

  /**
   * Checks that all recorded operations were requested.
   * @throws CodeMismatched
   */
  assertComplete(): void {
    const asked = (branch: string) => this.#cursors.get(branch)?.asked ?? 0;
    assertSame(() => assertAllReplayed(this.#recorded.values(), asked, this.#agent));
  }
}

/** Runs `compare` and converts the error JOURNAL_DIVERGENCE into CodeMismatched. */
function assertSame(compare: () => void): void {
  try {
    compare();
  } catch (error) {
    if (!isWritError(error) || error.reason !== 'JOURNAL_DIVERGENCE') throw error;
    const subject = error.metadata.call_id ?? '';
    throw new CodeMismatched({ mismatch: 'journal_divergence', subject }, error.message);
  }
}

function key({ branch, position, part }: Place): string {
  return `${branch}/${position}.${part}`;
}
