import { isReportableToModel } from '../../domain/calls/decision.ts';
import type { AgentContext } from '../../runtime/agent.ts';
import type { Stop } from '../../runtime/unwinding.ts';

const DEFAULT_MAX_REFUSALS = 3;

/**
 * Counts refusals, and stops the agent when the model may not see a refusal or the limit is exceeded (AG-10).
 */
export class Refusals {
  readonly #ctx: AgentContext;
  readonly #default: 'stop' | 'tell_model';
  #count = 0;

  constructor(ctx: AgentContext, byDefault: 'stop' | 'tell_model') {
    this.#ctx = ctx;
    this.#default = byDefault;
  }

  /** Number of refusals; part of checkpoints. */
  get count(): number {
    return this.#count;
  }

  /** Restores the count of a checkpoint. */
  restore(count: number): void {
    this.#count = count;
  }

  /** Counts a refusal. Returns if the model may see the refusal and continue; otherwise stops the agent. */
  take(stop: Stop): void {
    const { onRefusal = this.#default, limits } = this.#ctx.manifest;
    this.#count += 1;
    const isTooMuch = this.#count > (limits.maxRefusals ?? DEFAULT_MAX_REFUSALS);
    if (onRefusal === 'stop' || isTooMuch || !isReportableToModel(stop.stopReason))
      this.#ctx.stop(stop);
  }
}
