import type { RunState } from '@writ/kernel';
import type { WorkerEvents } from '../events.ts';
import type { AgentChanges } from '../store/agents.ts';
import { appendJournal } from '../store/journal.ts';
import { consumeSignal, type SignalRow } from '../store/signals.ts';
import type { WorkerTransaction } from '../store/worker-store.ts';

/** A write that belongs to what the agent did. */
type Write = (trx: WorkerTransaction, at: Date) => Promise<void>;

import type { Journal } from './journal.ts';
import type { AgentProgress } from './progress.ts';
import type { Session } from './session.ts';

/** The beginning of a step. */
interface StepStart {
  readonly step: number;
  /** The signal that it waits for; empty when it waits for none. */
  readonly waitsFor: string;
}

/** What goes into a commit beside what waits for one. */
export interface CommitExtras {
  /** Columns of the agent. */
  readonly changes?: AgentChanges;
  /** Further writes; what they throw undoes everything. */
  readonly also?: Write;
}

/**
 * Gathers what an agent did since the last commit — entries, used signals, steps — and commits it
 * together: once at the end of a step, earlier only where a crash could make it come out otherwise
 * (RT-1).
 */
export class Commits {
  readonly #session: Session;
  readonly #journal: Journal;
  readonly #events: WorkerEvents;
  readonly #onEvents: () => void;
  readonly #progress: AgentProgress;
  #usedSignals: SignalRow['position'][] = [];
  #writes: Write[] = [];
  #stepStarts: StepStart[] = [];
  #stepEnds: { readonly step: number; readonly status: string }[] = [];
  #latest: Promise<unknown> = Promise.resolve();

  constructor(parts: {
    readonly session: Session;
    readonly journal: Journal;
    readonly events: WorkerEvents;
    /** Told after a commit that wrote to the outbox. */
    readonly onEvents: () => void;
    readonly progress: AgentProgress;
  }) {
    this.#session = parts.session;
    this.#journal = parts.journal;
    this.#events = parts.events;
    this.#onEvents = parts.onEvents;
    this.#progress = parts.progress;
  }

  /** Notes that the agent used a signal. */
  used(signal: SignalRow['position']): void {
    this.#usedSignals.push(signal);
  }

  /** Whether the agent used a signal that is not committed as used. */
  isUsed(signal: SignalRow['position']): boolean {
    return this.#usedSignals.includes(signal);
  }

  /** Adds a write to what is committed next: it must change nothing that the agent is waiting to read. */
  add(write: Write): void {
    this.#writes.push(write);
  }

  /** Notes that a step began. */
  stepStarted(start: StepStart): void {
    this.#stepStarts.push(start);
  }

  /** Notes that a step ended, with a verdict or stop reason. */
  stepEnded(step: number, status: string): void {
    this.#stepEnds.push({ step, status });
  }

  /**
   * Called before an effect on another service: commits first what a crash could make come out
   * otherwise, and a step that is over.
   * @throws LeaseLost
   */
  async beforeEffect(): Promise<void> {
    if (this.#journal.isVolatile || this.#stepEnds.length > 0) await this.commit();
  }

  /**
   * Commits everything gathered; nothing happens when there is nothing.
   * @throws LeaseLost when the lease is over: nothing was written (RT-2)
   */
  async commit(extras: CommitExtras = {}): Promise<void> {
    // Operations may run side by side; what one commit has written the next must not write again.
    const turn = this.#latest.then(() => this.#commit(extras));
    this.#latest = turn.catch(() => undefined);
    await turn;
  }

  async #commit({ changes, also }: CommitExtras): Promise<void> {
    const entries = this.#journal.pending;
    const signals = [...this.#usedSignals];
    const writes = [...this.#writes];
    const starts = [...this.#stepStarts];
    const ends = [...this.#stepEnds];
    const gathered = entries.length + signals.length + writes.length + starts.length + ends.length;
    if (gathered === 0 && changes === undefined && also === undefined) return;
    const { row, lease } = this.#session;
    await this.#session.write(
      {
        journal_length: this.#journal.length,
        ...(starts.length > 0 && { step_started: Math.max(...starts.map(({ step }) => step)) }),
        ...(ends.length > 0 && { step_ended: Math.max(...ends.map(({ step }) => step)) }),
        ...changes,
      },
      async (trx, at) => {
        await appendJournal(trx, lease, entries, at);
        for (const signal of signals) await consumeSignal(trx, signal, at);
        // The step before ends before the next one begins.
        for (const { step, status } of ends) {
          await this.#events.stepEnded(trx, { agent: row, step }, status, at);
        }
        for (const { step, waitsFor } of starts) {
          await this.#events.stepStarted(trx, { agent: row, step }, waitsFor, at);
        }
        for (const write of writes) await write(trx, at);
        await also?.(trx, at);
      },
    );
    this.#journal.committed(entries.length);
    this.#usedSignals = this.#usedSignals.slice(signals.length);
    this.#writes = this.#writes.slice(writes.length);
    this.#stepStarts = this.#stepStarts.slice(starts.length);
    this.#stepEnds = this.#stepEnds.slice(ends.length);
    if (starts.length + ends.length + writes.length > 0) this.#onEvents();
    if (changes?.state !== undefined) this.#progress.publishState(changes.state as RunState);
  }
}
