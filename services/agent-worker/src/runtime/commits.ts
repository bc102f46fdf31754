import type { RunState } from '@writ/kernel';
import { shownState } from '../domain/agent/state.ts';
import type { WorkerEvents } from '../events.ts';
import type { AgentChanges } from '../store/agents.ts';
import { appendJournal } from '../store/journal.ts';
import { consumeSignal, type SignalRow } from '../store/signals.ts';
import type { WorkerTransaction } from '../store/worker-store.ts';

/** A write that belongs to the agent's pending changes. */
type Write = (trx: WorkerTransaction, at: Date) => Promise<void>;

import type { Journal } from './journal.ts';
import type { AgentProgress } from './progress.ts';
import type { Session } from './session.ts';

/** The start of a step. */
interface StepStart {
  readonly step: number;
  /** The signal that the step waits for; empty for none. */
  readonly waitsFor: string;
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
  #usedSignals: SignalRow['position'][] = [];
  #writes: Write[] = [];
  #stepStarts: StepStart[] = [];
  #stepEnds: { readonly step: number; readonly status: string }[] = [];
  #latest: Promise<unknown> = Promise.resolve();

  constructor(parts: {
    readonly session: Session;
    readonly journal: Journal;
    readonly events: WorkerEvents;
    /** Called after a commit that wrote to the outbox. */
    readonly onEvents: () => void;
    readonly progress: AgentProgress;
  }) {
    this.#session = parts.session;
    this.#journal = parts.journal;
    this.#events = parts.events;
    this.#onEvents = parts.onEvents;
    this.#progress = parts.progress;
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

  /** Records the start of a step. */
  stepStarted(start: StepStart): void {
    this.#stepStarts.push(start);
  }

  /** Records the end of a step, with a verdict or stop reason. */
  stepEnded(step: number, status: string): void {
    this.#stepEnds.push({ step, status });
  }

  /**
   * Must be called before an effect on another service: commits volatile entries and a finished
   * step first.
   * @throws LeaseLost
   */
  async beforeEffect(): Promise<void> {
    if (this.#journal.isVolatile || this.#stepEnds.length > 0) await this.commit();
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
        // A step ends before the next one starts.
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
    if (changes?.state !== undefined) this.#progress.publishState(stateAfter(changes));
  }
}

function stateAfter({ state, waiting_for }: AgentChanges): RunState {
  const waitingFor = JSON.parse(waiting_for ?? '[]') as string[];
  return shownState({ state: state as RunState, waitingFor });
}
