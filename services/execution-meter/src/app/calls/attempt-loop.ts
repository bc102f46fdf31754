import { setTimeout as sleep } from 'node:timers/promises';
import { backoffMs, InternalError, type WritError } from '@writ/kernel';
import type { MeterContext } from '../../context.ts';
import { type CallPlan, spendingFor } from '../../domain/calls/call-plan.ts';
import { type ChatAnswer, isEmptyAnswer } from '../../domain/chat/chat.ts';
import {
  type AttemptFailure,
  callFailure,
  EMPTY_ANSWER,
  failureError,
} from '../../domain/chat/failure.ts';
import { breachError } from '../../domain/ledger/breach-error.ts';
import { NO_SPENDING, NO_USAGE, type Spending } from '../../domain/ledger/spending.ts';
import type { AttemptOutcome, Provider } from '../../providers/provider.ts';
import { countTokens } from '../../providers/token-counter.ts';
import type { StoredCall } from '../../store/calls.ts';
import type { CallLedger } from './call-ledger.ts';
import { type CallPlanner, providerIdOf } from './call-planner.ts';
import type { CallLookup, OpenAttempt, Opening } from './call-record.ts';
import type { CallRequest } from './call-request.ts';
import type { ChunkBuffer } from './chunk-buffer.ts';
import { reportAnswer, reportFailure, reportInterruption } from './finished-chunk.ts';
import { sendAttempt } from './send-attempt.ts';

/** Dependencies of attempts. */
export interface AttemptDependencies {
  readonly context: MeterContext;
  readonly ledger: CallLedger;
  readonly provider: Provider;
}

/** The call that an {@link AttemptLoop} makes. */
export interface AttemptLoopOptions {
  readonly request: CallRequest;
  readonly planner: CallPlanner;
  readonly apiKey: string | undefined;
  readonly chunks: ChunkBuffer;
  /** Aborts the call; the reason is the error with which the call ends. */
  readonly signal: AbortSignal;
  readonly found: CallLookup;
}

/**
 * Makes the attempts of a call (EM-8). One commit before each attempt reserves its budget and marks it as sent; one
 * commit at the end settles the last attempt and records the outcome. Then appends `finished` (EM-7).
 */
export class AttemptLoop {
  readonly #dependencies: AttemptDependencies;
  readonly #options: AttemptLoopOptions;
  /** The last events of a native answer, which the caller receives after the settlement. */
  readonly #last: string[] = [];

  constructor(dependencies: AttemptDependencies, options: AttemptLoopOptions) {
    this.#dependencies = dependencies;
    this.#options = options;
  }

  /**
   * Runs the loop; call it only once. Resolves to the record if the call already has an outcome, to `owned_by_peer` if
   * another replica makes the call, and to undefined after an answer.
   * @throws the error that the call ends with
   */
  async run(): Promise<StoredCall | 'owned_by_peer' | undefined> {
    const { ledger } = this.#dependencies;
    const { request, planner, found } = this.#options;
    let opening = await this.#open(() => ledger.begin(request, planner.plan, found));
    for (let attempts = 1; opening.type === 'opened'; attempts += 1) {
      const { open } = opening;
      const outcome = await this.#send(open);
      const spent = await spendingOf(outcome, planner, open);
      const failure = outcome.type === 'failed' ? outcome.failure : undefined;
      const mayRetry =
        failure?.recoverable === true &&
        attempts <= planner.model.maxRetries &&
        // Events of a native answer that the caller has received cannot be replaced by another attempt. Text deltas do
        // not prevent a retry: the next `attempt` chunk begins a new text.
        !this.#options.chunks.hasNative;
      if (failure === undefined || !mayRetry || !(await this.#backOff(failure, attempts))) {
        await this.#conclude(open, outcome, spent, attempts);
        return undefined;
      }
      const { stopReason } = callFailure(planner.model, failure, attempts);
      const end = { spent, status: stopReason, warnings: [] };
      opening = await this.#open(() => ledger.retry(request, planner.plan, open, end));
    }
    return this.#reportUnopened(opening);
  }

  /** Opens an attempt; counts the tokens of the prompt only when their upper bound does not fit the budget. */
  async #open(open: () => Promise<Opening>): Promise<Exclude<Opening, { type: 'uncounted' }>> {
    const opening = await open();
    if (opening.type !== 'uncounted') return opening;
    await this.#options.planner.count();
    const counted = await open();
    if (counted.type !== 'uncounted') return counted;
    throw new InternalError(
      'PROMPT_TOKENS_NOT_COUNTED',
      'The ledger requires a counted prompt, but the prompt is already counted.',
    );
  }

  async #send(open: OpenAttempt): Promise<AttemptOutcome> {
    const { request, planner, apiKey, chunks, signal } = this.#options;
    // A freeze or cancellation after the commit prevents the request.
    if (signal.aborted) return { type: 'aborted', partial: [], sent: false };
    const { context, provider } = this.#dependencies;
    const { model } = planner;
    chunks.append({ type: 'attempt', attempt: open.attempt, providerModel: model.providerModel });
    const onText = (text: string): void => chunks.append({ type: 'text', text });
    const promptTokens = planner.promptTokensPossible;
    const spentOn = (outcome: AttemptOutcome) => spendingOf(outcome, planner, open);
    this.#last.length = 0;
    const onEvent = (json: string, isLast: boolean): void => {
      if (isLast) this.#last.push(json);
      else chunks.append({ type: 'native', json });
    };
    const attempt = {
      request,
      model,
      apiKey,
      open,
      promptTokens,
      signal,
      onText,
      onEvent,
      spentOn,
    };
    const outcome = await sendAttempt(context, provider, attempt);
    const isEmpty = outcome.type === 'answered' && isEmptyAnswer(outcome.answer);
    if (!isEmpty || !request.requireContent) return outcome;
    return { type: 'failed', failure: EMPTY_ANSWER, partial: [], usage: outcome.usage };
  }

  /**
   * Waits between two attempts for the longer of the back-off delay and the Retry-After of the provider, of which at
   * most `maxRetryAfterMs` counts (EM-8). Resolves to false when the call is aborted.
   */
  async #backOff({ retryAfterMs = 0 }: AttemptFailure, failed: number): Promise<boolean> {
    const { backoff } = this.#dependencies.context.config;
    const { signal } = this.#options;
    const delayMs = Math.max(
      backoffMs(failed, backoff),
      Math.min(retryAfterMs, backoff.maxRetryAfterMs),
    );
    try {
      await sleep(delayMs, undefined, { signal });
    } catch (error) {
      if (!signal.aborted) throw error;
    }
    return !signal.aborted;
  }

  async #conclude(
    open: OpenAttempt,
    outcome: AttemptOutcome,
    spent: Spending,
    attempts: number,
  ): Promise<void> {
    const { ledger } = this.#dependencies;
    const { planner, chunks, signal } = this.#options;
    if (outcome.type === 'answered') {
      const { answer, warnings, issuedIds: ids } = outcome;
      const issued = ids && { ...ids, provider: providerIdOf(planner.model) };
      const end = { spent, status: 'ok', warnings, answer, issued };
      const ended = await ledger.end(open, end);
      for (const json of this.#last) chunks.append({ type: 'native', json });
      return reportAnswer(chunks, ended);
    }
    if (signal.aborted || outcome.type === 'aborted') {
      const ended = await ledger.end(open, { spent, status: 'interrupted', warnings: [] });
      return reportInterruption(chunks, ended, signal.reason as WritError);
    }
    const failure = callFailure(planner.model, outcome.failure, attempts);
    const end = { spent: { ...spent, failed: true }, status: failure.stopReason, warnings: [] };
    const ended = await ledger.end(open, { ...end, failure });
    return reportFailure(chunks, ended, { failure, error: failureError(failure) });
  }

  /**
   * Handles an attempt that was not opened: returns the record of a call that has an outcome, or `owned_by_peer`; for a
   * refused or stopped attempt, appends `finished` and throws the error of the call.
   */
  #reportUnopened(
    opening: Exclude<Opening, { type: 'opened' | 'uncounted' }>,
  ): StoredCall | 'owned_by_peer' {
    const { request, chunks } = this.#options;
    switch (opening.type) {
      case 'recorded':
        return opening.call;
      case 'owned_by_peer':
        return 'owned_by_peer';
      case 'stopped':
        return reportInterruption(chunks, opening.ended, opening.error);
      case 'refused': {
        const error = breachError(opening.breach, {
          call_id: request.callId,
          fits_output_tokens: String(opening.fits),
        });
        const stopReason = `budget_exhausted:${opening.breach.dimension}`;
        const { reason, message } = error;
        const failure = { stopReason, reason, message };
        return reportFailure(chunks, opening.ended, { failure, error });
      }
    }
  }
}

/**
 * Returns the spending of an attempt (EM-8): nothing if the request was not sent or the provider cannot charge for it;
 * otherwise the usage that the provider reported; otherwise an estimate from the prompt and the received content, or
 * the full hold if the answer is not streamed and was not received.
 */
async function spendingOf(
  outcome: AttemptOutcome,
  planner: CallPlanner,
  { hold }: OpenAttempt,
): Promise<Spending> {
  const plan: CallPlan = planner.plan;
  if (outcome.type === 'failed' && !outcome.failure.mayCost) return NO_SPENDING;
  if (outcome.type === 'aborted' && !outcome.sent) return NO_SPENDING;
  if (outcome.type !== 'aborted' && outcome.usage !== undefined) {
    return spendingFor(plan, outcome.usage, false);
  }
  const texts = outcome.type === 'answered' ? textsOf(outcome.answer) : outcome.partial;
  if (texts === undefined) return { ...hold, estimated: true, failed: false };
  const [input, counted] = await Promise.all([planner.estimatedPromptTokens(), countTokens(texts)]);
  // The provider ends an answer at the requested limit by its own tokenizer; the tokenizer of the meter can count more
  // tokens for the same text.
  const output = atMost(counted, hold.usage.output);
  const { promptUsage } = outcome;
  const isPossible = promptUsage !== undefined && promptUsage.input <= planner.promptTokensPossible;
  const prompt = isPossible ? promptUsage : { ...NO_USAGE, input };
  return spendingFor(plan, { ...prompt, output }, true);
}

function atMost(value: bigint, limit: bigint): bigint {
  if (value > limit) return limit;
  return value;
}

function textsOf({ text, toolUses }: ChatAnswer): string[] {
  return [text, ...toolUses.flatMap(({ tool, argumentsJson }) => [tool, argumentsJson])];
}
