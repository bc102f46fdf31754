import { HOOK_EVENTS, type HookContext } from './hook-context.ts';
import type { HookCallback, Hooks } from './hook-manager.ts';

/** Keeps the last events, for a look while something is debugged (HK-3). */
export class RunLogger {
  readonly #capacity: number;
  readonly #events: HookContext[] = [];

  /** Keeps at most `capacity` events, the oldest going first; default 1 000. */
  constructor(capacity = 1_000) {
    this.#capacity = capacity;
  }

  /** What to give to `HookManager.register`. */
  readonly hooks: Hooks = Object.fromEntries(
    HOOK_EVENTS.map((event) => [event, ((context) => this.#keep(context)) as HookCallback]),
  );

  /** The events kept, oldest first; of one run when `runId` is given. */
  events(runId?: string): readonly HookContext[] {
    return this.#events.filter((event) => runId === undefined || event.run_id === runId);
  }

  #keep(context: HookContext): void {
    this.#events.push(context);
    if (this.#events.length > this.#capacity) this.#events.shift();
  }
}
