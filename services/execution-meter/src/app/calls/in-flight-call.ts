import { agentKeyText, CancellationError, PreconditionError, type WritError } from '@writ/kernel';
import type { ModelEntry } from '../../domain/catalog/catalog.ts';
import type { CallChunk } from '../../domain/chat/call-chunk.ts';
import { failureError } from '../../domain/chat/failure.ts';
import { dayOf } from '../../domain/ledger/balance.ts';
import type { PriceList } from '../../providers/catalog/price-list.ts';
import { readLevels } from '../../store/balances.ts';
import type { StoredCall } from '../../store/calls.ts';
import { deadlineError } from '../../store/require-spendable.ts';
import type { StoredTab } from '../../store/tabs.ts';
import { type AttemptDependencies, AttemptLoop } from './attempt-loop.ts';
import { waitForPeer } from './call-owner.ts';
import { CallPlanner, providerKey, requireDialect } from './call-planner.ts';
import { type CallLookup, requireSameRequest } from './call-record.ts';
import type { CallRequest } from './call-request.ts';
import { ChunkBuffer } from './chunk-buffer.ts';
import { reportAnswer, reportFailure } from './finished-chunk.ts';
import type { ModelSlots } from './model-call-slots.ts';
import { referencedTokens } from './referenced-tokens.ts';

/** Dependencies of calls. */
export interface CallDependencies extends AttemptDependencies {
  readonly slots: ModelSlots;
  readonly prices: PriceList;
}

/** Maximum delay of a timer, in milliseconds. */
const MAX_TIMER_MS = 2 ** 31 - 1;

/** One model call in flight in this process, shared by all callers that request it (EM-7). */
export class InFlightCall {
  readonly request: CallRequest;
  readonly startedAt: Date;
  /**
   * Resolves when the call has ended; never rejects. If the outcome could not be committed, the call is settled later
   * (recover-calls.ts).
   */
  readonly done: Promise<void>;
  readonly #tab: StoredTab;
  readonly #dependencies: CallDependencies;
  readonly #chunks = new ChunkBuffer();
  readonly #controller = new AbortController();
  #listeners = 0;
  #graceTimer: NodeJS.Timeout | undefined;
  #hasEnded = false;

  /** Starts the call. @param tab the tab of the agent */
  constructor(dependencies: CallDependencies, request: CallRequest, tab: StoredTab) {
    this.#dependencies = dependencies;
    this.#tab = tab;
    this.request = request;
    this.startedAt = dependencies.context.clock.now();
    this.done = this.#run().then(
      () => this.#end(),
      (error: unknown) => this.#end(error),
    );
  }

  /**
   * Whether `abort` was called before the call ended. The call can still end with an answer that was already received.
   */
  get isAborted(): boolean {
    return this.#controller.signal.aborted;
  }

  /**
   * Yields all chunks of the call from the start. Aborts the call at the provider when the call has had no listener for
   * longer than its grace period (SUP-8, AP-2).
   * @throws the error with which the call ends; the reason of `signal` when the signal aborts
   */
  async *listen(signal: AbortSignal): AsyncGenerator<CallChunk, void, undefined> {
    this.#listeners += 1;
    clearTimeout(this.#graceTimer);
    try {
      yield* this.#chunks.read(signal);
    } finally {
      this.#listeners -= 1;
      if (this.#listeners === 0) this.#abortAfterGrace();
    }
  }

  /** Aborts the call. Has no effect after the end of the call. */
  abort(reason: WritError): void {
    this.#controller.abort(reason);
  }

  #end(error?: unknown): void {
    this.#hasEnded = true;
    this.#chunks.end(error);
  }

  #abortAfterGrace(): void {
    // After the end, an abort has no effect but would still create an error and run the listeners of the signal.
    if (this.#hasEnded) return;
    const abort = () => this.abort(new CancellationError('the caller disconnected'));
    const { disconnectGraceMs } = this.request;
    if (disconnectGraceMs === 0) {
      abort();
      return;
    }
    this.#graceTimer = setTimeout(abort, disconnectGraceMs).unref();
    void this.done.then(() => clearTimeout(this.#graceTimer));
  }

  async #run(): Promise<void> {
    const { request } = this;
    const { store } = this.#dependencies.context;
    const { known, dead } = await waitForPeer(store, request, this.#controller.signal);
    if (known !== undefined) requireSameRequest(known, request);
    if (known?.state === 'answered' || known?.state === 'failed') return this.#replay(known);
    const outcome = await this.#execute({
      dead,
      isNew: known === undefined && !store.replicas.shared,
    });
    if (outcome === 'owned_by_peer') return await this.#run();
    if (outcome !== undefined) await this.#replay(outcome);
  }

  /**
   * Makes the call; resolves to its record when the call already has an outcome, and to `owned_by_peer` when another
   * replica makes it.
   */
  async #execute(found: CallLookup): Promise<StoredCall | 'owned_by_peer' | undefined> {
    const { request } = this;
    const { context, prices, slots } = this.#dependencies;
    const allowed = this.#tab.models.filter((alias) => request.tokenModels.includes(alias));
    const model = context.catalog.find(request.model, allowed);
    requireDialect(model, request);
    const apiKey = providerKey(model, context.config.variables);
    const withReferences = await this.#withReferences(model);
    const planner = new CallPlanner(withReferences, model, await prices.pricesOf(model));
    const { signal } = this.#controller;
    const stopDeadlineTimer = this.#startDeadlineTimer();
    try {
      const release = await slots.acquire(model, {
        flow: agentKeyText(request),
        weight: request.priority,
        signal,
      });
      const loop = new AttemptLoop(this.#dependencies, {
        request,
        planner,
        apiKey,
        chunks: this.#chunks,
        signal,
        found,
      });
      return await loop.run().finally(release);
    } finally {
      stopDeadlineTimer();
    }
  }

  /** Returns the request, with the tokens of the answers that it references added to `addedTokens`. */
  async #withReferences(model: ModelEntry): Promise<CallRequest> {
    const { request } = this;
    const { chat } = request;
    const { references } = chat.native ?? {};
    if (references === undefined) return request;
    const { context } = this.#dependencies;
    const referenced = await referencedTokens(context, this.#tab, model, references);
    return { ...request, chat: { ...chat, addedTokens: (chat.addedTokens ?? 0n) + referenced } };
  }

  /** Replays the recorded outcome of a call (EM-7). */
  async #replay(call: StoredCall): Promise<void> {
    requireSameRequest(call, this.request);
    if (call.purged) {
      throw new PreconditionError(
        'ANSWER_PURGED',
        `The answer of call ${call.callId} was deleted at the end of its run, according to its retention.`,
        { call_id: call.callId },
      );
    }
    const { store, catalog, clock } = this.#dependencies.context;
    const key = { ...this.#tab, day: dayOf(clock.now()) };
    const levels = await readLevels(store.db, key, catalog.tenantCaps(this.request.tenant));
    const ended = { tab: this.#tab, call, levels };
    const { failure } = call;
    if (failure === undefined) return reportAnswer(this.#chunks, ended, true);
    const error = failureError(failure);
    return reportFailure(this.#chunks, ended, { failure, error, replayed: true });
  }

  #startDeadlineTimer(): () => void {
    const { deadline } = this.#tab;
    if (deadline === undefined) return () => undefined;
    const now = this.#dependencies.context.clock.now();
    const remaining = deadline.getTime() - now.getTime();
    const timer = setTimeout(
      () => this.abort(deadlineError(this.request)),
      Math.min(Math.max(0, remaining), MAX_TIMER_MS),
    );
    return () => clearTimeout(timer);
  }
}
