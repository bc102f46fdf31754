import { admitEpoch } from '@writ/identity';
import { UnavailableError, type WritError } from '@writ/kernel';
import { type AgentKey, covers, type FreezeScope } from '../../domain/freeze.ts';
import { admitCaller, requireTab } from '../../store/admit.ts';
import { type CallAsk, callKey } from './call-ask.ts';
import type { CallChunk } from './call-chunk.ts';
import { CallFlight } from './call-flight.ts';
import type { CallParts } from './call-parts.ts';
import { refuseReuse } from './call-record.ts';

/** Every model call of this process (EM-7). */
export class ModelCalls {
  readonly #parts: CallParts;
  readonly #flights = new Map<string, CallFlight>();
  #closed = false;

  constructor(parts: CallParts) {
    this.#parts = parts;
  }

  /**
   * Makes a call, joins the one under way, or answers with its record; ends with exactly one `finished`
   * unless it is refused before it begins (EM-7, EM-9).
   * @throws NotFoundError TAB_NOT_FOUND, UNKNOWN_MODEL; PreconditionError STALE_EPOCH, HALTED, FROZEN,
   *   TAB_CLOSED, PRICE_MISSING, PROVIDER_KEY_MISSING, MODEL_VARIABLE_MISSING, ANSWER_PURGED;
   *   PermissionDeniedError MODEL_NOT_ALLOWED; InvalidRequestError CALL_ID_REUSED; OverloadedError
   *   MODEL_QUEUE_FULL; after `finished`: BudgetExhaustedError, DeadlineError LLM_TIMEOUT or
   *   DEADLINE_EXCEEDED, PreconditionError LLM_EMPTY or PROVIDER_ERROR
   */
  async *open(ask: CallAsk, signal: AbortSignal): AsyncGenerator<CallChunk, void, undefined> {
    const { store } = this.#parts.context;
    // Authorised before looked up: a worker that lost its lease learns nothing.
    const tab = await requireTab(store.db, ask);
    const isNewEpoch = admitEpoch(tab.epoch, ask.epoch) !== tab.epoch;
    if (this.#closed) throw stopping();
    const key = callKey(ask);
    let known = this.#flights.get(key);
    while (known?.isAborted === true) {
      // The next attempt follows the one that is being aborted.
      await known.done;
      known = this.#flights.get(key);
    }
    if (known !== undefined) refuseReuse(known.ask, ask);
    const flight = known ?? this.#start(key, new CallFlight(this.#parts, ask, tab));
    let noted = !isNewEpoch;
    for await (const chunk of flight.listen(signal)) {
      // A call that reserves notes the epoch; one that joins or is answered from the record does not.
      const isReplay = chunk.type === 'finished' && chunk.replayed;
      if (!noted && (known !== undefined || isReplay)) {
        noted = true;
        await this.#noteEpoch(ask);
      }
      yield chunk;
    }
  }

  /** Calls under way that a scope covers. */
  inFlight(scope: FreezeScope): readonly CallFlight[] {
    return [...this.#flights.values()].filter(({ ask }) => covers(scope, ask));
  }

  /** Agents that have calls under way, each once for every call. */
  callers(): readonly AgentKey[] {
    return Array.from(this.#flights.values(), ({ ask }) => ask);
  }

  /** Whether this process itself is making a call, so that it will settle it. */
  isMaking(call: AgentKey & { readonly callId: string }): boolean {
    return this.#flights.has(callKey(call));
  }

  /** Takes no new call, waits `graceMs` for those under way, then aborts them; all are settled then. */
  async close(graceMs: number): Promise<void> {
    this.#closed = true;
    const flights = [...this.#flights.values()];
    const abort = setTimeout(() => {
      for (const flight of flights) flight.abort(stopping());
    }, graceMs);
    await Promise.all(flights.map(({ done }) => done));
    clearTimeout(abort);
  }

  #start(key: string, flight: CallFlight): CallFlight {
    this.#flights.set(key, flight);
    void flight.done.then(() => this.#flights.delete(key));
    return flight;
  }

  async #noteEpoch(ask: CallAsk): Promise<void> {
    await this.#parts.context.store.transaction(async (trx) =>
      admitCaller(trx, await requireTab(trx, ask), ask.epoch),
    );
  }
}

function stopping(): WritError {
  return new UnavailableError('SHUTTING_DOWN', 'execution-meter is stopping; make the call again.');
}
