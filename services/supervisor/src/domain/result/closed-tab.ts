import type { RunUsage } from './run-usage.ts';

/** The number of failed model calls of an agent with one stop reason, and the last of these calls. */
export interface ModelFailure {
  /** `llm_timeout`, `llm_empty`, `provider_error:<what>` or `budget_exhausted:<dimension>`. */
  readonly stopReason: string;
  readonly count: number;
  readonly lastCallId: string;
}

/** What the meter returned when an agent's tab was closed. */
export interface ClosedTab {
  /** The usage of the agent. */
  readonly usage: RunUsage;
  /** The usage of all agents of the run at that time. */
  readonly runUsage: RunUsage;
  readonly failures: readonly ModelFailure[];
}
