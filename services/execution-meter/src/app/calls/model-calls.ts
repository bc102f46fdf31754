import type { FreezableCalls, FrozenCall } from '@writ/freeze';
import { admitEpoch } from '@writ/identity';
import {
  type AgentKey,
  type CallKey,
  callKeyText,
  covers,
  type Scope,
  settlesWithin,
  UnavailableError,
  type WritError,
} from '@writ/kernel';
import type { CallChunk } from '../../domain/chat/call-chunk.ts';
import { admitCaller, requireTab } from '../../store/require-spendable.ts';
import { requireSameRequest } from './call-record.ts';
import type { CallRequest } from './call-request.ts';
import { type CallDependencies, InFlightCall } from './in-flight-call.ts';

/** Registry of the model calls in flight in this process (EM-7). */
export class ModelCalls implements FreezableCalls {
  readonly #dependencies: CallDependencies;
  readonly #calls = new Map<string, InFlightCall>();
  #closed = false;

  constructor(dependencies: CallDependencies) {
    this.#dependencies = dependencies;
  }

  /**
   * Makes a call, joins the call if it is already in flight, or replays its record. The stream ends with exactly one
   * `finished` chunk, unless the call is rejected before it starts, its reader disconnects, or its outcome cannot be
   * committed (EM-7, EM-9).
   * @throws NotFoundError TAB_NOT_FOUND, UNKNOWN_MODEL, RESPONSE_NOT_FOUND; PreconditionError STALE_EPOCH,
   *   HALTED, FROZEN, TAB_CLOSED, PRICE_MISSING, PROVIDER_KEY_MISSING, MODEL_VARIABLE_MISSING,
   *   ANSWER_PURGED; PermissionDeniedError MODEL_NOT_ALLOWED; InvalidRequestError CALL_ID_REUSED,
   *   DIALECT_NOT_SUPPORTED, NATIVE_FIELD_NOT_ALLOWED; DeadlineError DEADLINE_EXCEEDED; OverloadedError
   *   MODEL_QUEUE_FULL; UnavailableError SHUTTING_DOWN; after `finished`: BudgetExhaustedError,
   *   DeadlineError LLM_TIMEOUT or DEADLINE_EXCEEDED, PreconditionError LLM_EMPTY, PROVIDER_ERROR, HALTED,
   *   FROZEN or TAB_CLOSED, CancellationError, UnavailableError SHUTTING_DOWN
   */
  async *open(
    request: CallRequest,
    signal: AbortSignal,
  ): AsyncGenerator<CallChunk, void, undefined> {
    const { store } = this.#dependencies.context;
    // Authorization precedes the lookup: a worker without the lease must not learn the outcome.
    const tab = await requireTab(store.db, request);
    const isNewEpoch = admitEpoch(tab.epoch, request.epoch) !== tab.epoch;
    const key = callKeyText(request);
    let known = this.#calls.get(key);
    while (known?.isAborted === true) {
      // The next attempt starts after the aborted attempt is settled.
      await known.done;
      known = this.#calls.get(key);
    }
    if (this.#closed) throw shuttingDown();
    if (known !== undefined) requireSameRequest(known.request, request);
    const call = known ?? this.#start(key, new InFlightCall(this.#dependencies, request, tab));
    let isEpochStored = !isNewEpoch;
    for await (const chunk of call.listen(signal)) {
      // The reservation of a new call stores the epoch; a joined or replayed call reserves nothing, so the epoch is
      // stored here.
      const isReplay = chunk.type === 'finished' && chunk.replayed;
      if (!isEpochStored && (known !== undefined || isReplay)) {
        isEpochStored = true;
        await this.#storeEpoch(request);
      }
      yield chunk;
    }
  }

  /** Aborts the calls in flight of the agents for which `reasonOf` returns an error. */
  abort(reasonOf: (agent: AgentKey) => WritError | undefined): void {
    for (const call of this.#calls.values()) {
      const reason = reasonOf(call.request);
      if (reason !== undefined) call.abort(reason);
    }
  }

  /** Waits up to `ms` milliseconds until the calls in flight that a scope covers are settled. */
  async settle(scope: Scope, ms: number): Promise<void> {
    const calls = this.#within(scope);
    if (calls.length === 0 || ms === 0) return;
    await settlesWithin(Promise.all(calls.map(({ done }) => done)), ms);
  }

  /** Returns the calls in flight that a scope covers. */
  list(scope: Scope): readonly FrozenCall[] {
    return this.#within(scope).map(({ request, startedAt }) => {
      const { tenant, runId, instance, callId, model } = request;
      return { tenant, runId, instance, callId, target: model, startedAt };
    });
  }

  /** Returns the agents with calls in flight, once per call. */
  callers(): readonly AgentKey[] {
    return Array.from(this.#calls.values(), ({ request }) => request);
  }

  /** Whether a call is in flight in this process, which then settles it. */
  has(call: CallKey): boolean {
    return this.#calls.has(callKeyText(call));
  }

  /**
   * Rejects new calls, waits up to `graceMs` milliseconds for the calls in flight, and aborts the remaining calls.
   * Resolves when all calls have ended; a call whose outcome could not be committed is settled later
   * (recover-calls.ts).
   */
  async close(graceMs: number): Promise<void> {
    this.#closed = true;
    const calls = [...this.#calls.values()];
    const abort = setTimeout(() => {
      for (const call of calls) call.abort(shuttingDown());
    }, graceMs);
    await Promise.all(calls.map(({ done }) => done));
    clearTimeout(abort);
  }

  #within(scope: Scope): readonly InFlightCall[] {
    return [...this.#calls.values()].filter(({ request }) => covers(scope, request));
  }

  #start(key: string, call: InFlightCall): InFlightCall {
    this.#calls.set(key, call);
    void call.done.then(() => this.#calls.delete(key));
    return call;
  }

  async #storeEpoch(request: CallRequest): Promise<void> {
    await this.#dependencies.context.store.transaction(
      async (trx) => admitCaller(trx, await requireTab(trx, request), request.epoch),
      { run: request },
    );
  }
}

function shuttingDown(): WritError {
  return new UnavailableError('SHUTTING_DOWN', 'execution-meter is shutting down; retry the call.');
}
