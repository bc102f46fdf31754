import { type Decision, withoutWrit } from '../domain/calls/decision.ts';
import {
  assertAllAsked,
  assertSameOperation,
  callIdOf,
  type JournalEntry,
  type Operation,
  type Place,
} from '../domain/journal/entry.ts';

/** An operation of a service that a peer knows by its call_id. */
export interface NumberedCall extends Pick<Place, 'branch' | 'position'> {
  readonly callId: string;
}

/** The operations of one branch, in order. Branches side by side do not number each other's. */
export class Lane {
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
}

/**
 * An agent's journal while it runs: what is recorded is given back, what is new is kept until it is
 * committed (RT-1).
 */
export class Journal {
  readonly #agent: string;
  readonly #recorded: ReadonlyMap<string, JournalEntry>;
  readonly #pending: JournalEntry[] = [];
  readonly #lanes = new Map<string, Lane>();
  #length: number;
  #isVolatile = false;

  constructor(agent: string, entries: readonly JournalEntry[]) {
    this.#agent = agent;
    this.#recorded = new Map(entries.map((entry) => [key(entry), entry]));
    this.#length = entries.length;
  }

  /** Begins a branch; the empty one is the agent itself. */
  lane(branch: string): Lane {
    const lane = new Lane(branch);
    this.#lanes.set(branch, lane);
    return lane;
  }

  /**
   * The entry of an operation that was done before; undefined when it is news.
   * @throws DataLossError JOURNAL_DIVERGENCE when something else was done there
   */
  recall(operation: Operation): JournalEntry | undefined {
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
    this.#pending.push(entry);
    this.#isVolatile ||= isVolatile;
  }

  /** Drops the writ of a decision that is not committed yet: it is large and secret, and spent. */
  forgetWrit(review: Place): void {
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
  get pending(): readonly JournalEntry[] {
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

  /** @throws DataLossError JOURNAL_DIVERGENCE when the agent has left out something that is recorded */
  assertComplete(): void {
    const asked = (branch: string) => this.#lanes.get(branch)?.asked ?? 0;
    assertAllAsked(this.#recorded.values(), asked, this.#agent);
  }
}

function key({ branch, position, part }: Place): string {
  return `${branch}/${position}.${part}`;
}
