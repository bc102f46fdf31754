import type { RunState } from '@writ/kernel';
import { addEvents, carriedEvent } from '../domain/agent/carried-event.ts';
import { shownState } from '../domain/agent/state.ts';
import { waitsText } from '../domain/agent/waits.ts';
import { eventIdOf, type WorkerEvent, type WorkerEvents } from '../events.ts';
import type { AgentChanges } from '../store/agents.ts';
import { appendJournal } from '../store/journal.ts';
import { consumeSignal, type SignalRow } from '../store/signals.ts';
import type { WorkerTransaction } from '../store/worker-store.ts';

/** A write that belongs to the agent's pending changes. */
type Write = (trx: WorkerTransaction, at: Date) => Promise<void>;

/** Creates an event with the time of the commit. */
type MakeEvent = (at: Date) => WorkerEvent;

import type { Journal } from './journal.ts';
import type { PendingReceipts } from './pending-receipts.ts';
import type { AgentProgress } from './progress.ts';
import type { Session } from './session.ts';

/** The start of a step. */
interface StepStart {
  readonly step: number;
  /** The signal that the step waits for; empty for none. */
  readonly waitsFor: string;
  /** The step before it; zero for none. */
  readonly lastStep: number;
}

/** Additional content of a commit. */
export interface CommitExtras {
  /** Columns of the agent to update. */
  readonly changes?: AgentChanges;
  /** Additional writes; an error rolls back the whole commit. */
  readonly also?: Write;
}

/**
 * Collects an agent's changes since the last commit (entries, consumed signals, steps) and commits
 * them together: once at the end of a step, and earlier only where a replay after a crash could
 * have another result (RT-1).
 */
export class Commits {
  readonly #session: Session;
  readonly #journal: Journal;
  readonly #events: WorkerEvents;
  readonly #onEvents: () => void;
  readonly #progress: AgentProgress;
  readonly #carried: PendingReceipts;
  #usedSignals: SignalRow['position'][] = [];
  #writes: Write[] = [];
  #makeEvents: MakeEvent[] = [];
  #stepStarted = 0;
  #stepEnded = 0;
  #stepEndsPending = 0;
  #storedEvents: string;
  #latest: Promise<unknown> = Promise.resolve();

  constructor(parts: {
    readonly session: Session;
    readonly journal: Journal;
    readonly events: WorkerEvents;
    /** Called after a commit that wrote to the outbox. */
    readonly onEvents: () => void;
    readonly progress: AgentProgress;
    /** Stored with each commit as far as the supervisor has not acknowledged it. */
    readonly carried: PendingReceipts;
  }) {
    this.#session = parts.session;
    this.#journal = parts.journal;
    this.#events = parts.events;
    this.#onEvents = parts.onEvents;
    this.#progress = parts.progress;
    this.#carried = parts.carried;
    this.#storedEvents = parts.session.row.unreported_events;
  }

  /** Records that the agent consumed a signal. */
  used(signal: SignalRow['position']): void {
    this.#usedSignals.push(signal);
  }

  /** Whether the agent consumed a signal that is not yet committed as consumed. */
  isUsed(signal: SignalRow['position']): boolean {
    return this.#usedSignals.includes(signal);
  }

  /** Adds a write to the next commit; the agent must not depend on it before. */
  add(write: Write): void {
    this.#writes.push(write);
  }

  /** Emits an event with the next commit, in the order of these calls. */
  emit(event: MakeEvent): void {
    this.#makeEvents.push(event);
  }

  /** Records the start of a step. */
  stepStarted({ step, ...start }: StepStart): void {
    const { row: agent } = this.#session;
    this.#stepStarted = step;
    this.emit((at) => this.#events.stepStarted({ agent, step }, start, at));
  }

  /** Records the end of a step, with a verdict or stop reason. */
  stepEnded(step: number, status: string): void {
    const { row: agent } = this.#session;
    const after = this.#carried.waiting.map(({ callId }) => eventIdOf(agent, callId, 'TOOL_END'));
    this.#stepEnded = step;
    this.#stepEndsPending += 1;
    this.emit((at) => this.#events.stepEnded({ agent, step }, { status, after }, at));
  }

  /**
   * Must be called before an effect on another service: commits volatile entries and a finished
   * step first.
   * @throws LeaseLost
   */
  async beforeEffect(): Promise<void> {
    if (this.#journal.isVolatile || this.#stepEndsPending > 0) await this.commit();
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

  async #commit({ changes, also }: CommitExtras): Promise<void> {
    const entries = this.#journal.pending;
    const signals = [...this.#usedSignals];
    const writes = [...this.#writes];
    const makers = [...this.#makeEvents];
    const ends = this.#stepEndsPending;
    const gathered = entries.length + signals.length + writes.length + makers.length;
    if (gathered === 0 && changes === undefined && also === undefined) return;
    let made: WorkerEvent[] = [];
    let stored = this.#storedEvents;
    await this.#session.write(
      (at) => {
        made = makers.map((make) => make(at));
        stored = this.#eventsWith(made);
        return {
          journal_length: this.#journal.length,
          ...(this.#stepStarted > 0 && { step_started: this.#stepStarted }),
          ...(this.#stepEnded > 0 && { step_ended: this.#stepEnded }),
          ...(stored !== this.#storedEvents && { unreported_events: stored }),
          ...(signals.length > 0 && { waiting_since: waitsText(this.#session.waits) }),
          ...changes,
        };
      },
      async (trx, at) => {
        await appendJournal(trx, this.#session.lease, entries, at);
        for (const signal of signals) await consumeSignal(trx, signal, at);
        for (const event of made) await this.#events.append(trx, event, at);
        for (const write of writes) await write(trx, at);
        await also?.(trx, at);
      },
    );
    this.#storedEvents = stored;
    this.#carried.addEvents(made.map(({ payload }) => carriedEvent(payload)));
    this.#journal.committed(entries.length);
    this.#usedSignals = this.#usedSignals.slice(signals.length);
    this.#writes = this.#writes.slice(writes.length);
    this.#makeEvents = this.#makeEvents.slice(makers.length);
    this.#stepEndsPending -= ends;
    if (made.length + writes.length > 0) this.#onEvents();
    if (changes?.state !== undefined) this.#progress.publishState(stateAfter(changes));
  }

  #eventsWith(made: readonly WorkerEvent[]): string {
    const added = made.map(({ payload }) => carriedEvent(payload));
    return JSON.stringify(addEvents(this.#carried.events, added));
  }
}

function stateAfter({ state, waiting_for }: AgentChanges): RunState {
  const waitingFor = JSON.parse(waiting_for ?? '[]') as string[];
  return shownState({ state: state as RunState, waitingFor });
}
