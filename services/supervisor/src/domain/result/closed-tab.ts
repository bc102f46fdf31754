import type { RunUsage } from './run-usage.ts';

/** Model calls of an agent that ended without an answer. */
export interface ModelFailure {
  /** `llm_timeout`, `llm_empty` or `provider_error:<what>`. */
  readonly stopReason: string;
  readonly count: number;
  readonly lastCallId: string;
}

/** What the meter said when an agent's tab was closed. */
export interface ClosedTab {
  /** What the agent spent. */
  readonly usage: RunUsage;
  /** What all agents of the run had spent by then. */
  readonly runUsage: RunUsage;
  readonly failures: readonly ModelFailure[];
}
