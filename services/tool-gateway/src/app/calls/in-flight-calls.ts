import type { FreezableCalls, FrozenCall } from '@writ/freeze';
import {
  type CallKey,
  CancellationError,
  callKeyText,
  covers,
  type Scope,
  settlesWithin,
} from '@writ/kernel';
import type { CallRow } from '../../store/calls.ts';

/** A call that this process is working on. */
export interface InFlightCall {
  readonly key: CallKey;
  readonly tool: string;
  /** Aborts when the call is cancelled: by a freeze, by a shutdown, or because its last caller disconnected. */
  readonly cancelSignal: AbortSignal;
  /** Time at which intent was recorded; undefined before that. */
  startedAt: Date | undefined;
  /** The call continues after its last caller disconnects; a repeat returns its outcome. */
  outlivesCallers: boolean;
  /** The call had an outcome before this attempt. */
  recorded: boolean;
}

/** Executes a call; resolves to its row with an outcome. */
export type Attempt = (call: InFlightCall) => Promise<CallRow>;

interface Entry extends InFlightCall {
  readonly controller: AbortController;
  readonly outcome: Promise<CallRow>;
  callers: number;
}

/** Registry of the calls that this process is working on; repeats of a call join it (TG-1). */
export class InFlightCalls implements FreezableCalls {
  readonly #entries = new Map<string, Entry>();

  /** Whether this process is working on the call. */
  has(key: CallKey): boolean {
    return this.#entries.has(callKeyText(key));
  }

  /**
   * Waits for the outcome of the call; begins the call with `attempt` when it is not in flight. A call that was
   * cancelled because all its callers disconnected is begun again after it has ended.
   * @param signal aborts when this caller disconnects; the last caller to disconnect cancels a call that may
   *   be repeated
   * @returns the call; `joined` is true when another caller began this attempt, or the call had an outcome before the
   *   attempt
   */
  async join(
    key: CallKey,
    tool: string,
    signal: AbortSignal,
    attempt: Attempt,
  ): Promise<{ readonly call: CallRow; readonly joined: boolean }> {
    signal.throwIfAborted();
    const name = callKeyText(key);
    const disconnected = Promise.withResolvers<never>();
    const leave = () => disconnected.reject(signal.reason);
    signal.addEventListener('abort', leave, { once: true });
    try {
      for (let orphan = this.#orphan(name); orphan !== undefined; orphan = this.#orphan(name)) {
        await Promise.race([orphan.outcome.catch(() => undefined), disconnected.promise]);
      }
      const known = this.#entries.get(name);
      const entry = known ?? this.#begin(name, key, tool, attempt);
      const call = await this.#outcomeFor(entry, disconnected.promise);
      return { call, joined: known !== undefined || entry.recorded };
    } finally {
      signal.removeEventListener('abort', leave);
    }
  }

  /** Cancels every call in the scope. @returns the cancelled calls */
  cancel(scope: Scope, reason: Error): readonly InFlightCall[] {
    const entries = this.#within(scope);
    for (const { controller } of entries) controller.abort(reason);
    return entries;
  }

  /** Cancels every call for which `reasonOf` returns a reason. */
  abort(reasonOf: (key: CallKey) => Error | undefined): void {
    for (const { key, controller } of this.#entries.values()) {
      const reason = reasonOf(key);
      if (reason !== undefined) controller.abort(reason);
    }
  }

  /** Returns the keys of the calls in flight. */
  callers(): readonly CallKey[] {
    return Array.from(this.#entries.values(), ({ key }) => key);
  }

  /** Returns the calls in the scope that have started; a freeze rejects the others before they start. */
  list(scope: Scope): readonly FrozenCall[] {
    return this.#within(scope).flatMap(({ key, tool, startedAt }) => {
      if (startedAt === undefined) return [];
      const { tenant, runId, instance, callId } = key;
      return [{ tenant, runId, instance, callId, target: tool, startedAt }];
    });
  }

  /** Waits up to `ms` until the calls in the scope have ended. @returns the calls that have not ended */
  async settle(scope: Scope, ms: number): Promise<readonly InFlightCall[]> {
    await settlesWithin(Promise.allSettled(this.#within(scope).map(({ outcome }) => outcome)), ms);
    return this.#within(scope);
  }

  /** The call if it was cancelled, has no callers and has not ended; undefined otherwise. */
  #orphan(name: string): Entry | undefined {
    const entry = this.#entries.get(name);
    return entry?.callers === 0 && entry.cancelSignal.aborted ? entry : undefined;
  }

  /** Waits for the outcome as one of the callers. */
  async #outcomeFor(entry: Entry, disconnected: Promise<never>): Promise<CallRow> {
    entry.callers += 1;
    try {
      return await Promise.race([entry.outcome, disconnected]);
    } finally {
      entry.callers -= 1;
      if (entry.callers === 0 && !entry.outlivesCallers) {
        entry.controller.abort(new CancellationError('Every caller of the call disconnected.'));
      }
    }
  }

  #begin(name: string, key: CallKey, tool: string, attempt: Attempt): Entry {
    const controller = new AbortController();
    const started = Promise.withResolvers<CallRow>();
    const entry: Entry = {
      key,
      tool,
      controller,
      cancelSignal: controller.signal,
      outcome: started.promise,
      startedAt: undefined,
      outlivesCallers: false,
      recorded: false,
      callers: 0,
    };
    this.#entries.set(name, entry);
    // Prevents an unhandled rejection if the call fails without callers; callers receive the failure through join().
    entry.outcome.catch(() => undefined);
    attempt(entry)
      .finally(() => this.#entries.delete(name))
      .then(started.resolve, started.reject);
    return entry;
  }

  #within(scope: Scope): Entry[] {
    return Array.from(this.#entries.values()).filter(({ key }) => covers(scope, key));
  }
}
