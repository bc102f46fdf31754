import { HOOK_EVENTS, type HookContext } from './hook-context.ts';
import type { HookCallback, Hooks } from './hook-manager.ts';

/**
 * Keeps the most recent events, for debugging (HK-3).
 *
 * @example
 * ```ts
 * import { HookManager, RunLogger } from '@writ/hooks';
 *
 * const logger = new RunLogger(100);
 * const hooks = new HookManager({ onProblem: (problem) => console.error(problem) });
 * hooks.register(logger.hooks);
 * console.log(logger.events('run_1').map(({ event, status }) => `${event} ${status ?? ''}`));
 * ```
 */
export class RunLogger {
  readonly #capacity: number;
  readonly #events: HookContext[] = [];
  /** The callbacks for `HookManager.register`. */
  readonly hooks: Hooks;

  /** @param capacity maximum number of events; the oldest is dropped first. Default 1,000. */
  constructor(capacity = 1_000) {
    this.#capacity = capacity;
    const runLogger: HookCallback = (context) => this.#keep(context);
    this.hooks = Object.fromEntries(HOOK_EVENTS.map((event) => [event, runLogger]));
  }

  /** Returns the kept events, oldest first, optionally of one run. */
  events(runId?: string): readonly HookContext[] {
    return this.#events.filter((event) => runId === undefined || event.run_id === runId);
  }

  #keep(context: HookContext): void {
    this.#events.push(context);
    if (this.#events.length > this.#capacity) this.#events.shift();
  }
}
