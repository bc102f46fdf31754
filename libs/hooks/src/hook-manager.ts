import { isPromise } from 'node:util/types';
import type { HookContext, HookEventName } from './hook-context.ts';

/** Observes an event. What it returns, throws or never finishes changes nothing (HK-3). */
export type HookCallback = (context: HookContext) => unknown;

/** Callbacks by event, as `HookManager.register` takes them. */
export type Hooks = { readonly [E in HookEventName]?: HookCallback };

/** A callback that did not do its part: ids, never content. */
export interface HookProblem {
  readonly event: HookEventName;
  readonly event_id: string;
  /** Name of the callback's function, or `anonymous`. */
  readonly callback: string;
  /** What it threw; absent when it took longer than `patienceMs`. */
  readonly error?: unknown;
}

/** How a manager works. */
export interface HookManagerOptions {
  /** Name of the agent whose events it takes; absent means every agent's, and those of no agent. */
  readonly agent?: string;
  /** Told of every callback that threw or hung; must not throw. */
  readonly onProblem: (problem: HookProblem) => void;
  /** Milliseconds that `dispatch` waits for a callback before it goes on without it; default 5 000. */
  readonly patienceMs?: number;
}

const DEFAULT_PATIENCE_MS = 5_000;

/** Calls observers of a run's events: cameras, not guards (HK-3). */
export class HookManager {
  readonly #agent: string | undefined;
  readonly #onProblem: HookManagerOptions['onProblem'];
  readonly #patienceMs: number;
  readonly #callbacks = new Map<HookEventName, Set<{ readonly call: HookCallback }>>();

  constructor(options: HookManagerOptions) {
    this.#agent = options.agent;
    this.#onProblem = options.onProblem;
    this.#patienceMs = options.patienceMs ?? DEFAULT_PATIENCE_MS;
  }

  /** Has `callback` called at every `event`, sync or async; the function returned ends that. */
  on(event: HookEventName, callback: HookCallback): () => void {
    const entry = { call: callback };
    const entries = this.#callbacks.get(event) ?? new Set();
    this.#callbacks.set(event, entries.add(entry));
    return () => {
      entries.delete(entry);
    };
  }

  /** Has each callback called at its event; the function returned ends that for all of them. */
  register(hooks: Hooks): () => void {
    const ends = Object.entries(hooks).map(([event, callback]) =>
      this.on(event as HookEventName, (context) => callback(context)),
    );
    return () => {
      for (const end of ends) end();
    };
  }

  /**
   * Calls the event's callbacks at the same time. Resolves when each has finished, thrown or used up
   * its patience; never rejects. An event of another agent than the manager's is passed over.
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
      if (isPromise(result) && (await this.#hangs(result))) this.#onProblem(problem);
    } catch (error) {
      this.#onProblem({ ...problem, error });
    }
  }

  async #hangs(result: Promise<unknown>): Promise<boolean> {
    const patience = Promise.withResolvers<boolean>();
    const timer = setTimeout(() => patience.resolve(true), this.#patienceMs);
    try {
      return await Promise.race([result.then(() => false), patience.promise]);
    } finally {
      clearTimeout(timer);
    }
  }
}
