import { CancellationError } from '@writ/kernel';
import { covers, type FreezeScope } from '../../domain/freeze.ts';
import type { CallKey } from '../../domain/writ.ts';
import type { CallRow } from '../../store/calls.ts';

/** A call that this process is working on. */
export interface InFlightCall {
  readonly key: CallKey;
  readonly tool: string;
  /** Aborts when the call is called off: by a freeze, a stop, or because nobody waits for it. */
  readonly cancelSignal: AbortSignal;
  /** When intent was recorded; undefined before. */
  startedAt: Date | undefined;
  /** It goes on when nobody waits any more: a repeat will ask for what it did. */
  outlivesCallers: boolean;
  /** It turned out to have an outcome before this attempt. */
  recorded: boolean;
}

/** What a call comes to: its row, with an outcome. */
export type Attempt = (call: InFlightCall) => Promise<CallRow>;

interface Entry extends InFlightCall {
  readonly controller: AbortController;
  readonly outcome: Promise<CallRow>;
  waiting: number;
}

/** The calls that this process is working on; repeats of a call join it (TG-1). */
export class InFlightCalls {
  readonly #entries = new Map<string, Entry>();

  /** Whether this process is working on the call. */
  has(key: CallKey): boolean {
    return this.#entries.has(nameOf(key));
  }

  /**
   * Waits for what becomes of the call; begins it with `attempt` when nobody has.
   * @param signal aborts when this caller goes away; the last one to go calls off what may be repeated
   * @returns the call, and whether somebody else had begun it, here or at another replica
   */
  async join(
    key: CallKey,
    tool: string,
    signal: AbortSignal,
    attempt: Attempt,
  ): Promise<{ readonly call: CallRow; readonly joined: boolean }> {
    signal.throwIfAborted();
    const name = nameOf(key);
    const known = this.#entries.get(name);
    const entry = known ?? this.#begin(name, key, tool, attempt);
    entry.waiting += 1;
    const gone = Promise.withResolvers<never>();
    const leave = () => gone.reject(signal.reason);
    signal.addEventListener('abort', leave, { once: true });
    try {
      const call = await Promise.race([entry.outcome, gone.promise]);
      return { call, joined: known !== undefined || entry.recorded };
    } finally {
      signal.removeEventListener('abort', leave);
      entry.waiting -= 1;
      if (entry.waiting === 0 && !entry.outlivesCallers) {
        entry.controller.abort(new CancellationError('Nobody waits for the call any more.'));
      }
    }
  }

  /** Calls off everything within the scope. @returns what was, whose outcome can be awaited */
  cancel(scope: FreezeScope, reason: Error): readonly InFlightCall[] {
    const concerned = this.#within(scope);
    for (const { controller } of concerned) controller.abort(reason);
    return concerned;
  }

  /** Calls off whatever `reasonOf` gives a reason for. */
  cancelWhere(reasonOf: (key: CallKey) => Error | undefined): void {
    for (const { key, controller } of this.#entries.values()) {
      const reason = reasonOf(key);
      if (reason !== undefined) controller.abort(reason);
    }
  }

  /** Whether there are any. */
  get any(): boolean {
    return this.#entries.size > 0;
  }

  /** When the one that runs longest was begun; undefined when none was. */
  get earliestStart(): Date | undefined {
    const starts = Array.from(this.#entries.values(), ({ startedAt }) => startedAt?.getTime());
    const known = starts.filter((start) => start !== undefined);
    return known.length === 0 ? undefined : new Date(Math.min(...known));
  }

  /** Waits until the calls within the scope have ended, `ms` at most. @returns those that have not */
  async settle(scope: FreezeScope, ms: number): Promise<readonly InFlightCall[]> {
    const ended = Promise.allSettled(this.#within(scope).map(({ outcome }) => outcome));
    const { promise: late, resolve } = Promise.withResolvers<void>();
    const timer = setTimeout(resolve, ms);
    await Promise.race([ended, late]);
    clearTimeout(timer);
    return this.#within(scope);
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
      waiting: 0,
    };
    this.#entries.set(name, entry);
    // Whoever waits is told; that nobody does any more is no fault.
    entry.outcome.catch(() => undefined);
    attempt(entry)
      .finally(() => this.#entries.delete(name))
      .then(started.resolve, started.reject);
    return entry;
  }

  #within(scope: FreezeScope): Entry[] {
    return Array.from(this.#entries.values()).filter(({ key }) => covers(scope, key));
  }
}

function nameOf({ tenant, runId, agentInstance, callId }: CallKey): string {
  return `${tenant}/${runId}/${agentInstance}/${callId}`;
}
