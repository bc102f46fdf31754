import { CancellationError, PreconditionError, type WritError } from '@writ/kernel';
import { failureError } from '../../domain/chat/failure.ts';
import { dayOf } from '../../domain/ledger/calendar.ts';
import { deadlineError } from '../../store/admit.ts';
import { readLevels } from '../../store/balances.ts';
import type { StoredCall } from '../../store/calls.ts';
import type { StoredTab } from '../../store/tabs.ts';
import type { CallAsk } from './call-ask.ts';
import type { CallChunk } from './call-chunk.ts';
import { CallCourse } from './call-course.ts';
import { CallLog } from './call-log.ts';
import type { CallParts } from './call-parts.ts';
import { CallPlanner, providerKey } from './call-planner.ts';
import { refuseReuse } from './call-record.ts';
import { reportAnswer, reportFailure } from './call-report.ts';
import { untilFree } from './elsewhere.ts';

/** Longest delay that a timer takes. */
const MAX_TIMER_MS = 2 ** 31 - 1;

/** One model call under way in this process, however many callers wait for it (EM-7). */
export class CallFlight {
  readonly ask: CallAsk;
  readonly startedAt: Date;
  /** Resolves when the call has left the books in order; never rejects. */
  readonly done: Promise<void>;
  readonly #tab: StoredTab;
  readonly #parts: CallParts;
  readonly #log = new CallLog();
  readonly #controller = new AbortController();
  #listeners = 0;

  /** Starts the call. @param tab the agent's, as the caller was admitted to it */
  constructor(parts: CallParts, ask: CallAsk, tab: StoredTab) {
    this.#parts = parts;
    this.#tab = tab;
    this.ask = ask;
    this.startedAt = parts.context.clock.now();
    this.done = this.#run().then(
      () => this.#log.end(),
      (error: unknown) => this.#log.end(error),
    );
  }

  /** Whether it was told to end before its outcome. */
  get isAborted(): boolean {
    return this.#controller.signal.aborted;
  }

  /**
   * Everything that the call says, from its start. When the last listener leaves, the call is aborted
   * at the provider (SUP-8).
   * @throws the error that the call ends with; the signal's reason when it aborts
   */
  async *listen(signal: AbortSignal): AsyncGenerator<CallChunk, void, undefined> {
    this.#listeners += 1;
    try {
      yield* this.#log.read(signal);
    } finally {
      this.#listeners -= 1;
      if (this.#listeners === 0) this.abort(new CancellationError('the caller went away'));
    }
  }

  /** Ends the call where it stands; without effect once it has ended. */
  abort(reason: WritError): void {
    this.#controller.abort(reason);
  }

  async #run(): Promise<void> {
    const { ask } = this;
    const { context } = this.#parts;
    const { known, gone } = await untilFree(context.store, ask, this.#controller.signal);
    if (known !== undefined) refuseReuse(known, ask);
    if (known?.state === 'answered' || known?.state === 'failed') return this.#replay(known);
    const outcome = await this.#make(gone);
    // Another replica was faster.
    if (outcome === 'elsewhere') return await this.#run();
    if (outcome !== undefined) await this.#replay(outcome);
  }

  /** Makes the call; resolves with its record when it turns out to have one. */
  async #make(gone: ReadonlySet<string>): Promise<StoredCall | 'elsewhere' | undefined> {
    const { ask } = this;
    const { context, prices, slots } = this.#parts;
    const allowed = this.#tab.models.filter((alias) => ask.tokenModels.includes(alias));
    const model = context.catalog.find(ask.model, allowed);
    const apiKey = providerKey(model, context.config.variables);
    const planner = new CallPlanner(ask, model, await prices.pricesOf(model));
    const { signal } = this.#controller;
    const stopWatching = this.#watchDeadline();
    try {
      const release = await slots.acquire(model, {
        flow: `${ask.tenant}/${ask.runId}/${ask.agentInstance}`,
        weight: ask.priority,
        signal,
      });
      const course = new CallCourse(this.#parts, {
        ask,
        planner,
        apiKey,
        log: this.#log,
        signal,
        gone,
      });
      return await course.run().finally(release);
    } finally {
      stopWatching();
    }
  }

  /** Answers with the record of a call that has ended (EM-7). */
  async #replay(call: StoredCall): Promise<void> {
    refuseReuse(call, this.ask);
    if (call.purged) {
      throw new PreconditionError(
        'ANSWER_PURGED',
        `The answer of call ${call.callId} was deleted when its run ended, as its retention says.`,
        { call_id: call.callId },
      );
    }
    const { store, catalog, clock } = this.#parts.context;
    const key = { ...this.#tab, day: dayOf(clock.now()) };
    const levels = await readLevels(store.db, key, catalog.tenantCaps(this.ask.tenant));
    const ended = { tab: this.#tab, call, levels };
    if (call.failure === undefined) return reportAnswer(this.#log, ended, true);
    return reportFailure(this.#log, ended, call.failure, failureError(call.failure), true);
  }

  #watchDeadline(): () => void {
    const { deadline } = this.#tab;
    if (deadline === undefined) return () => undefined;
    const left = deadline.getTime() - this.startedAt.getTime();
    const timer = setTimeout(
      () => this.abort(deadlineError(this.ask)),
      Math.min(Math.max(0, left), MAX_TIMER_MS),
    );
    return () => clearTimeout(timer);
  }
}
