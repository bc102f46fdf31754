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
  record(stop: Stop): void {
    this.#count += 1;
    if (this.#endsAgent(stop, this.#count)) this.#ctx.stop(stop);
  }

  /** Whether {@link record} would stop the agent at one of these refusals, which are not counted yet. */
  wouldStop(refusals: readonly Stop[]): boolean {
    return refusals.some((stop, index) => this.#endsAgent(stop, this.#count + index + 1));
  }

  #endsAgent({ stopReason }: Stop, count: number): boolean {
    const { onRefusal = this.#default, limits } = this.#ctx.manifest;
    const isTooMuch = count > (limits.maxRefusals ?? DEFAULT_MAX_REFUSALS);
    return onRefusal === 'stop' || isTooMuch || !isReportableToModel(stopReason);
  }
}
