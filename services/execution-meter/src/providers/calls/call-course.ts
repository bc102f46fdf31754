import { setTimeout as sleep } from 'node:timers/promises';
import { InternalError, type WritError } from '@writ/kernel';
import { isEmptyAnswer } from '../../domain/chat/chat.ts';
import {
  type AttemptFailure,
  callFailure,
  EMPTY_ANSWER,
  failureError,
} from '../../domain/chat/failure.ts';
import { breachError } from '../../domain/ledger/breach-error.ts';
import type { Spending } from '../../domain/ledger/spending.ts';
import { backOffMs } from '../../domain/retry.ts';
import type { StoredCall } from '../../store/calls.ts';
import type { AttemptOutcome } from '../provider.ts';
import { askModel } from './ask-model.ts';
import type { CallAsk } from './call-ask.ts';
import type { CallLog } from './call-log.ts';
import type { OpenAttempt, Opening } from './call-outcomes.ts';
import type { CallParts } from './call-parts.ts';
import type { CallPlanner } from './call-planner.ts';
import { reportAnswer, reportFailure, reportInterruption } from './call-report.ts';
import { spendingOf } from './spending.ts';

/** What the course of a call needs beside the parts. */
export interface CourseOptions {
  readonly ask: CallAsk;
  readonly planner: CallPlanner;
  readonly apiKey: string | undefined;
  readonly log: CallLog;
  /** Aborts with the error that the call then ends with. */
  readonly signal: AbortSignal;
  /** Replicas that have ended. */
  readonly gone: ReadonlySet<string>;
}

/**
 * Takes a call through its attempts (EM-8): one commit before each, which reserves and marks as sent,
 * and one at the end, which settles and records; only then is `finished` told (EM-7). Resolves with the
 * record when the call turns out to have one, and with `elsewhere` when another replica is making it.
 * @throws the error that the call ends with
 */
export class CallCourse {
  readonly #parts: CallParts;
  readonly #options: CourseOptions;

  constructor(parts: CallParts, options: CourseOptions) {
    this.#parts = parts;
    this.#options = options;
  }

  /** Runs it; a course is run once. */
  async run(): Promise<StoredCall | 'elsewhere' | undefined> {
    const { books } = this.#parts;
    const { ask, planner, gone } = this.#options;
    let opening = await this.#open(() => books.begin(ask, planner.plan, gone));
    for (let tries = 1; opening.type === 'opened'; tries += 1) {
      const { open } = opening;
      const outcome = await this.#try(open);
      const spent = await spendingOf(outcome, planner.plan, open.hold, () =>
        planner.promptTokens(),
      );
      const failure = outcome.type === 'failed' ? outcome.failure : undefined;
      const mayRetry = failure?.recoverable === true && tries <= planner.model.maxRetries;
      if (failure === undefined || !mayRetry || !(await this.#backOff(failure, tries))) {
        await this.#conclude(open, outcome, spent, tries);
        return undefined;
      }
      const { stopReason } = callFailure(ask.model, failure, tries);
      const end = { spent, status: stopReason, warnings: [] };
      opening = await this.#open(() => books.retry(ask, planner.plan, open, end));
    }
    return this.#unopened(opening);
  }

  /** Opens an attempt; counts the prompt when only that tells whether it fits. */
  async #open(open: () => Promise<Opening>): Promise<Exclude<Opening, { type: 'uncounted' }>> {
    const opening = await open();
    if (opening.type !== 'uncounted') return opening;
    await this.#options.planner.count();
    const counted = await open();
    if (counted.type !== 'uncounted') return counted;
    throw new InternalError(
      'PROMPT_TOKENS_NOT_COUNTED',
      'A counted prompt was taken for an upper bound.',
    );
  }

  async #try(open: OpenAttempt): Promise<AttemptOutcome> {
    const { ask, planner, apiKey, log, signal } = this.#options;
    // Whoever froze or left between the commit and here is heard before anything is sent.
    if (signal.aborted) return { type: 'aborted', partial: [], sent: false };
    const { model } = planner;
    log.append({ type: 'attempt', attempt: open.attempt, providerModel: model.providerModel });
    const onText = (text: string): void => log.append({ type: 'text', text });
    const outcome = await askModel(this.#parts, { ask, model, apiKey, open, signal, onText });
    const isEmpty = outcome.type === 'answered' && isEmptyAnswer(outcome.answer);
    if (!isEmpty || !ask.requireContent) return outcome;
    return { type: 'failed', failure: EMPTY_ANSWER, partial: [], usage: outcome.usage };
  }

  /** Waits between attempts; answers whether the next one may come. */
  async #backOff({ retryAfterMs }: AttemptFailure, failed: number): Promise<boolean> {
    const { backOff } = this.#parts.context.config;
    const { signal } = this.#options;
    try {
      await sleep(backOffMs(backOff, failed, Math.random(), retryAfterMs), undefined, { signal });
    } catch (error) {
      if (!signal.aborted) throw error;
    }
    return !signal.aborted;
  }

  async #conclude(
    open: OpenAttempt,
    outcome: AttemptOutcome,
    spent: Spending,
    tries: number,
  ): Promise<void> {
    const { books } = this.#parts;
    const { ask, log, signal } = this.#options;
    if (outcome.type === 'answered') {
      const { answer, warnings } = outcome;
      const end = { spent, status: 'ok', warnings, answer };
      return reportAnswer(log, await books.end(open, end));
    }
    if (signal.aborted || outcome.type === 'aborted') {
      const ended = await books.end(open, { spent, status: 'interrupted', warnings: [] });
      return reportInterruption(log, ended, signal.reason as WritError);
    }
    const failure = callFailure(ask.model, outcome.failure, tries);
    const end = { spent: { ...spent, failed: true }, status: failure.stopReason, warnings: [] };
    const ended = await books.end(open, { ...end, failure });
    return reportFailure(log, ended, failure, failureError(failure));
  }

  /** No attempt was opened: there is a record, or a cap or an order forbids it. */
  #unopened(opening: Exclude<Opening, { type: 'opened' | 'uncounted' }>): StoredCall | 'elsewhere' {
    const { ask, log } = this.#options;
    switch (opening.type) {
      case 'recorded':
        return opening.call;
      case 'elsewhere':
        return 'elsewhere';
      case 'stopped':
        return reportInterruption(log, opening.ended, opening.error);
      case 'refused': {
        const error = breachError(opening.breach, {
          call_id: ask.callId,
          fits_output_tokens: String(opening.fits),
        });
        const stopReason = `budget_exhausted:${opening.breach.dimension}`;
        const { reason, message } = error;
        return reportFailure(log, opening.ended, { stopReason, reason, message }, error);
      }
    }
  }
}
