import type { HookContext } from './hook-context.ts';
import type { Hooks } from './hook-manager.ts';

/** What a run has spent so far. */
export interface RunCost {
  readonly input_tokens: number;
  readonly output_tokens: number;
  readonly cost_nano_usd: bigint;
  /** Model calls that were settled. */
  readonly calls: number;
}

const NOTHING: RunCost = { input_tokens: 0, output_tokens: 0, cost_nano_usd: 0n, calls: 0 };

/** Adds up what LLM_END events tell, and says each run's total at its RUN_END (HK-3). */
export class CostTracker {
  readonly #runs = new Map<string, RunCost>();
  readonly #onTotal: (runId: string, total: RunCost) => void;

  /** `onTotal` is told a run's total once, when it ended; the run is forgotten then. */
  constructor(onTotal: (runId: string, total: RunCost) => void) {
    this.#onTotal = onTotal;
  }

  /** What to give to `HookManager.register`. */
  readonly hooks: Hooks = {
    LLM_END: (context) => this.#add(context),
    RUN_END: (context) => this.#close(context),
  };

  /** What a run that goes on has spent so far. */
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
