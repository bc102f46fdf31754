import type { RunState } from '@writ/kernel';
import type { TransactionOptions } from '@writ/store';
import { carriedEvent } from '../../domain/agent/carried-event.ts';
import { shownState } from '../../domain/agent/state.ts';
import { waitsText } from '../../domain/agent/waits.ts';
import { eventIdOf, type WorkerEvent, type WorkerEvents } from '../../events.ts';
import type { AgentChanges } from '../../store/agents.ts';
import { appendJournal } from '../../store/journal.ts';
import { consumeSignal, type SignalRow } from '../../store/signals.ts';
import type { WorkerTransaction } from '../../store/worker-store.ts';
import type { LeaseSession } from '../leases/lease-session.ts';
import type { PendingReceipts } from '../pending-receipts.ts';
import type { AgentProgress } from '../progress.ts';
import { LeaseLost } from '../unwinding.ts';
import type { Journal } from './journal.ts';

/**
 * Delay of the commit that soon() schedules, in milliseconds; a commit that is required earlier includes the changes
 * and cancels it.
 */
const COMMIT_DELAY_MS = 250;
/**
 * Maximum number of TOOL_END events that the STEP_END event of a step names; more would exceed the maximum size of an
 * event.
 */
const MAX_TOOL_ENDS = 128;

/** A write that belongs to the agent's pending changes. */
type Write = (trx: WorkerTransaction, at: Date) => Promise<void>;

/** Transaction options for rows that do not belong to the run. */
type Touched = Pick<TransactionOptions, 'tenant' | 'resource'>;

/** A write that the next commit includes. */
interface PendingWrite {
  readonly write: Write;
  /** The tenant, if the write reads or writes rows of other runs of the tenant. */
  readonly tenant: string | undefined;
}

/** Creates an event with its time. */
type CreateEvent = (at: Date) => WorkerEvent;

/** The start of a step. */
interface StepStart {
  readonly step: number;
  /** The signal that the step waits for; empty when it waits for no signal. */
  readonly waitsFor: string;
  /** The number of the previous step; zero for the first step. */
  readonly lastStep: number;
}

/** Additional content of a commit. */
export interface CommitExtras {
  /** Columns of the agent to update. */
  readonly changes?: AgentChanges;
  /** Additional writes; an error rolls back the whole commit. */
  readonly also?: Write;
  /** Transaction options for the rows that `also` reads or writes and that do not belong to the run. */
  readonly touched?: Touched;
}

/**
 * Collects an agent's changes since the last commit (entries, consumed signals, steps) and commits them together:
 * before an effect that depends on something that a replay could change, when the agent is suspended or ends, and soon
 * after the start of a step. After a crash, the agent requests uncommitted results again, and the services return their
 * recorded answers (RT-1). Services do not record refusals, so a refusal is committed before the next effect.
 */
export class Commits {
  readonly #session: LeaseSession;
  readonly #journal: Journal;
  readonly #emitter: WorkerEvents;
  readonly #onEvents: () => void;
  readonly #progress: AgentProgress;
  readonly #carried: PendingReceipts;
  #usedSignals: SignalRow['position'][] = [];
  /** All signals that the agent has consumed under this lease. */
  readonly #everUsed = new Set<SignalRow['position']>();
  #writes: PendingWrite[] = [];
  #events: WorkerEvent[] = [];
  #stepStarted = 0;
  #stepEnded = 0;
  #storedEvents: string;
  #storesFirstReads: boolean;
  #delay: NodeJS.Timeout | undefined;
  #hasFailed = false;
  #latest: Promise<unknown> = Promise.resolve();

  constructor(parts: {
    readonly session: LeaseSession;
    readonly journal: Journal;
    readonly events: WorkerEvents;
    /** Called after a commit that may have written to the outbox. */
    readonly onEvents: () => void;
    readonly progress: AgentProgress;
    /** Pending receipts and events; each commit stores the events until the supervisor has acknowledged them. */
    readonly carried: PendingReceipts;
  }) {
    this.#session = parts.session;
    this.#journal = parts.journal;
    this.#emitter = parts.events;
    this.#onEvents = parts.onEvents;
    this.#progress = parts.progress;
    this.#carried = parts.carried;
    this.#storedEvents = parts.session.row.unreported_events;
    this.#storesFirstReads = parts.session.row.first_reads !== null;
  }

  /** Records that the agent consumed a signal. */
  used(signal: SignalRow['position']): void {
    this.#usedSignals.push(signal);
    this.#everUsed.add(signal);
  }

  /**
   * Whether the agent has consumed a signal under this lease; until the commit, the store still returns the signal as
   * unconsumed.
   */
  isUsed(signal: SignalRow['position']): boolean {
    return this.#everUsed.has(signal);
  }

  /** Number of consumed signals whose consumption is not committed yet. */
  get uncommittedSignals(): number {
    return this.#usedSignals.length;
  }

  /**
   * Adds a write to the next commit; the agent must not depend on the write before this commit. A write and the journal
   * entry that records it must be added together, because any commit may store the entry. `tenant` must be set if the
   * write reads or writes rows of other runs of the tenant.
   */
  add(write: Write, { tenant }: { readonly tenant?: string } = {}): void {
    this.#writes.push({ write, tenant });
  }

  /**
   * Stores an event with the next commit, in the order of the calls to `emit`. Requests to the supervisor may carry the
   * event before this commit.
   */
  emit(create: CreateEvent): void {
    const event = create(this.#session.meta.clock.now());
    this.#events.push(event);
    this.#carried.addEvents([carriedEvent(event.payload)]);
  }

  /** Records the start of a step. */
  stepStarted({ step, ...start }: StepStart): void {
    const { row: agent } = this.#session;
    this.#stepStarted = step;
    this.emit((at) => this.#emitter.stepStarted({ agent, step }, start, at));
  }

  /** Records the end of a step, with a verdict or stop reason. */
  stepEnded(step: number, status: string): void {
    const { row: agent } = this.#session;
    const after = [
      ...this.#carried.waiting
        .slice(-MAX_TOOL_ENDS)
        .map(({ callId }) => eventIdOf(agent, callId, 'TOOL_END')),
      ...this.#carried.earlierInStep(step),
    ];
    this.#stepEnded = step;
    this.emit((at) => this.#emitter.stepEnded({ agent, step }, { status, after }, at));
  }

  /**
   * Must be called before an effect on another service: commits volatile entries and added writes first.
   * @throws LeaseLost
   */
  async beforeEffect(): Promise<void> {
    if (this.#journal.isVolatile || this.#writes.length > 0) await this.commit();
  }

  /** Commits all pending changes soon, unless another commit does so before. */
  soon(): void {
    this.#delay ??= setTimeout(() => {
      this.commit().catch((error: unknown) => {
        // Any other error recurs at the next required commit, which reports it.
        if (error instanceof LeaseLost) this.#session.interrupt('lost', true);
      });
    }, COMMIT_DELAY_MS);
  }

  /**
   * If the last commit failed, discards the pending entries, signals and writes, as after a crash, so that a write that
   * always fails cannot prevent the restart and the end of the agent.
   */
  async discardFailed(): Promise<void> {
    await this.#latest;
    if (!this.#hasFailed) return;
    this.#journal.discardPending();
    this.#usedSignals = [];
    this.#writes = [];
  }

  /**
   * Commits all pending changes, if there are any.
   * @throws LeaseLost when the lease is lost; nothing was written (RT-2)
   */
  async commit(extras: CommitExtras = {}): Promise<void> {
    // Concurrent operations must not write the same changes twice.
    const turn = this.#latest.then(() => this.#commit(extras));
    this.#latest = turn.catch(() => undefined);
    await turn;
  }

  async #commit({ changes, also, touched }: CommitExtras): Promise<void> {
    clearTimeout(this.#delay);
    this.#delay = undefined;
    const entries = this.#journal.pending;
    const signals = [...this.#usedSignals];
    const writes = [...this.#writes];
    const events = [...this.#events];
    const gathered = entries.length + signals.length + writes.length + events.length;
    if (gathered === 0 && changes === undefined && also === undefined) return;
    const carried = JSON.stringify(this.#carried.events);
    // This commit journals the first reads that the agent has used; the others are dropped.
    this.#session.dropFirst();
    // Read before the write, because the agent may continue during the write.
    const columns = {
      journal_length: this.#journal.length,
      ...(this.#stepStarted > 0 && { step_started: this.#stepStarted }),
      ...(this.#stepEnded > 0 && { step_ended: this.#stepEnded }),
      ...(carried !== this.#storedEvents && { unreported_events: carried }),
      ...(this.#storesFirstReads && { first_reads: null }),
      ...(signals.length > 0 && { waiting_since: waitsText(this.#session.waits) }),
      ...changes,
    };
    const work: Write = async (trx, at) => {
      await appendJournal(trx, this.#session.lease, entries, at);
      for (const signal of signals) await consumeSignal(trx, signal, at);
      for (const event of events) await this.#emitter.append(trx, event, at);
      for (const { write } of writes) await write(trx, at);
      await also?.(trx, at);
    };
    // The rows of a tenant include those of its resources.
    const tenant = writes.find((write) => write.tenant !== undefined)?.tenant;
    try {
      await this.#session.write(columns, work, tenant === undefined ? touched : { tenant });
      this.#hasFailed = false;
    } catch (error) {
      this.#hasFailed = true;
      throw error;
    }
    this.#storedEvents = carried;
    this.#storesFirstReads = false;
    this.#journal.committed(entries.length);
    this.#usedSignals = this.#usedSignals.slice(signals.length);
    this.#writes = this.#writes.slice(writes.length);
    this.#events = this.#events.slice(events.length);
    if (events.length + writes.length > 0) this.#onEvents();
    if (changes?.state !== undefined) this.#progress.publishState(stateAfter(changes));
  }
}

function stateAfter({ state, waiting_for }: AgentChanges): RunState {
  const waitingFor = JSON.parse(waiting_for ?? '[]') as string[];
  return shownState({ state: state as RunState, waitingFor });
}
