import type { HookContext } from './hook-context.ts';
import type { Hooks } from './hook-manager.ts';

/** The usage and cost of a run. */
export interface RunCost {
  readonly input_tokens: number;
  readonly output_tokens: number;
  readonly cost_nano_usd: bigint;
  /** Number of settled model calls. */
  readonly calls: number;
}

const NOTHING: RunCost = { input_tokens: 0, output_tokens: 0, cost_nano_usd: 0n, calls: 0 };

/**
 * Sums the usage of LLM_END events, and reports the total of a run at its RUN_END (HK-3).
 *
 * @example
 * ```ts
 * import { CostTracker, HookManager } from '@writ/hooks';
 * import { formatUsd } from '@writ/kernel';
 *
 * const tracker = new CostTracker((runId, total) => console.log(runId, formatUsd(total.cost_nano_usd)));
 * const hooks = new HookManager({ onProblem: (problem) => console.error(problem) });
 * hooks.register(tracker.hooks);
 * ```
 */
export class CostTracker {
  readonly #runs = new Map<string, RunCost>();
  readonly #onTotal: (runId: string, total: RunCost) => void;

  /** @param onTotal called with the total of a run when it has ended; the run is then removed */
  constructor(onTotal: (runId: string, total: RunCost) => void) {
    this.#onTotal = onTotal;
  }

  /** The callbacks for `HookManager.register`. */
  readonly hooks: Hooks = {
    LLM_END: (context) => this.#add(context),
    RUN_END: (context) => this.#close(context),
  };

  /** Returns the total of a run in progress. */
  total(runId: string): RunCost {
    return this.#runs.get(runId) ?? NOTHING;
  }

  #add({ run_id: runId, usage, cost_nano_usd: cost = 0n }: HookContext): void {
    if (runId === undefined || usage === undefined) return;
    const before = this.total(runId);
    this.#runs.set(runId, {
      input_tokens: before.input_tokens + usage.input_tokens,
      output_tokens: before.output_tokens + usage.output_tokens,
      cost_nano_usd: before.cost_nano_usd + cost,
      calls: before.calls + 1,
    });
  }

  #close({ run_id: runId }: HookContext): void {
    if (runId === undefined) return;
    const total = this.total(runId);
    this.#runs.delete(runId);
    this.#onTotal(runId, total);
  }
}
