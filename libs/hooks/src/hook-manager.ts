import { isPromise } from 'node:util/types';
import { withTimeout } from '@writ/kernel';
import type { HookContext, HookEventName } from './hook-context.ts';

/** Observes an event. Its result, errors and duration do not affect the run (HK-3). */
export type HookCallback = (context: HookContext) => unknown;

/** Callbacks by event. */
export type Hooks = { readonly [E in HookEventName]?: HookCallback };

/**
 * Report of a callback that failed or timed out. It identifies the event by its id and does not include the event's
 * content.
 */
export interface HookProblem {
  readonly event: HookEventName;
  readonly event_id: string;
  /** Name of the function that was passed to `on` or `register`; `anonymous` if it has none. */
  readonly callback: string;
  /** The error; absent when the callback exceeded `timeoutMs`. */
  readonly error?: unknown;
}

/** Options of a {@link HookManager}. */
export interface HookManagerOptions {
  /** Name of the agent whose events are dispatched. Default: all events. */
  readonly agent?: string;
  /** Called for every callback that throws or times out; must not throw. */
  readonly onProblem: (problem: HookProblem) => void;
  /** Maximum time that `dispatch` waits for a callback, ms. Default 5,000. */
  readonly timeoutMs?: number;
}

const DEFAULT_TIMEOUT_MS = 5_000;

/**
 * Calls observers of hook events. Observers cannot change a run (HK-3).
 *
 * @example
 * ```ts
 * import { HookManager } from '@writ/hooks';
 *
 * const hooks = new HookManager({
 *   agent: 'refund-worker',
 *   onProblem: ({ callback, event, error }) => console.error(callback, event, error),
 * });
 * const unsubscribe = hooks.on('LLM_END', ({ model, usage }) => console.log(model, usage?.output_tokens));
 * unsubscribe();
 * ```
 */
export class HookManager {
  readonly #agent: string | undefined;
  readonly #onProblem: HookManagerOptions['onProblem'];
  readonly #timeoutMs: number;
  readonly #callbacks = new Map<HookEventName, Set<{ readonly call: HookCallback }>>();

  constructor(options: HookManagerOptions) {
    this.#agent = options.agent;
    this.#onProblem = options.onProblem;
    this.#timeoutMs = options.timeoutMs ?? DEFAULT_TIMEOUT_MS;
  }

  /** Calls `callback`, sync or async, for every `event`, until the returned function is called. */
  on(event: HookEventName, callback: HookCallback): () => void {
    const entry = { call: callback };
    const entries = this.#callbacks.get(event) ?? new Set();
    this.#callbacks.set(event, entries.add(entry));
    return () => {
      entries.delete(entry);
    };
  }

  /** Registers several callbacks; the returned function unregisters them. */
  register(hooks: Hooks): () => void {
    const ends = Object.entries(hooks).map(([event, callback]) =>
      this.on(event as HookEventName, callback),
    );
    return () => {
      for (const end of ends) end();
    };
  }

  /**
   * Calls the callbacks of the event; the async callbacks run concurrently. Resolves when each has finished, thrown or
   * timed out; never rejects. Ignores events of agents other than `agent`.
   */
  async dispatch(context: HookContext): Promise<void> {
    if (this.#agent !== undefined && context.agent_name !== this.#agent) return;
    const entries = Array.from(this.#callbacks.get(context.event) ?? []);
    await Promise.all(entries.map(({ call }) => this.#call(call, context)));
  }

  async #call(callback: HookCallback, context: HookContext): Promise<void> {
    const { event, event_id } = context;
    const problem = { event, event_id, callback: callback.name || 'anonymous' };
    try {
      const result = callback(context);
      if (!isPromise(result)) return;
      await withTimeout<unknown>(result, this.#timeoutMs, () => this.#onProblem(problem));
    } catch (error) {
      this.#onProblem({ ...problem, error });
    }
  }
}
