import { isReportableToModel } from '../../domain/calls/decision.ts';
import type { AgentContext } from '../../runtime/agent.ts';
import type { Stop } from '../../runtime/unwinding.ts';

const DEFAULT_MAX_REFUSALS = 3;

/** Counts what was refused, and stops the agent when it may not be told, or not once more (AG-10). */
export class Refusals {
  readonly #ctx: AgentContext;
  readonly #default: 'stop' | 'tell_model';
  #count = 0;

  constructor(ctx: AgentContext, byDefault: 'stop' | 'tell_model') {
    this.#ctx = ctx;
    this.#default = byDefault;
  }

  /** How many there were; a checkpoint takes them along. */
  get count(): number {
    return this.#count;
  }

  /** Goes on from a checkpoint. */
  restore(count: number): void {
    this.#count = count;
  }

  /** Takes a refusal down; returns when the model may be told of it and go on. */
  take(stop: Stop): void {
    const { onRefusal = this.#default, limits } = this.#ctx.manifest;
    this.#count += 1;
    const isTooMuch = this.#count > (limits.maxRefusals ?? DEFAULT_MAX_REFUSALS);
    if (onRefusal === 'stop' || isTooMuch || !isReportableToModel(stop.stopReason))
      this.#ctx.stop(stop);
  }
}
