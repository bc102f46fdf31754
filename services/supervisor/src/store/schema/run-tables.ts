import type { Phase, TerminalState } from '@writ/kernel';

/** The calls that a tenant may make now: a bucket that fills (SYS-6). */
export interface TenantRatesTable {
  tenant: string;
  tokens: number;
  filled_at: Date;
}

/** Where a run stands; the last nine are for ever (AG-7, RT-4). */
export type StoredRunState =
  | 'PENDING'
  | 'RUNNING'
  | 'SUSPENDED'
  | 'PARKED'
  | 'ENDING'
  | TerminalState;

/** Where an agent stands for the supervisor: it lives until its ending is recorded. */
export type StoredAgentState = 'RUNNING' | 'SUSPENDED' | 'PARKED' | TerminalState;

/** One row for each run: one execution tree (SUP-2). */
export interface RunsTable {
  tenant: string;
  run_id: string;
  /** The caller's idempotency id; unique with tenant and created_by. */
  request_id: string;
  /** SHA-256 of the request, so that the same id with another request is noticed. */
  request_digest: string;
  session_id: string;
  agent_name: string;
  root_instance: string;
  goal: string;
  /** The caller's structured input; empty when there is none. */
  data_json: string;
  state: StoredRunState;
  created_by: string;
  created_at: Date;
  deadline_at: Date | null;
  /** JSON: an execution budget of domain/manifest. */
  run_budget: string;
  /** JSON: a spawn budget of domain/manifest. */
  spawn_budget: string;
  /** Name of the weight. */
  priority: string;
  retention: string;
  /** JSON object of texts. */
  labels: string;
  trace_id: string;
  /** Parent context of everything that is done for this run later (SYS-1). */
  traceparent: string;
  definition_hash: string;
  /** The catalog alias that was chosen. */
  model: string;
  /** Tool calls that were approved so far, over all agents. */
  approved_calls: number;
  /** What was spent, from the closed tabs, as JSON; null before. */
  usage: string | null;
  /** JSON of domain/result; null before the terminal state. */
  result: string | null;
  ended_at: Date | null;
  /** When its contents were deleted (SUP-4). */
  purged_at: Date | null;
}

/** One row for each agent that a run may hand work to, as it was defined when the run began. */
export interface DefinitionsTable {
  tenant: string;
  run_id: string;
  name: string;
  /** JSON: a manifest of domain/manifest. */
  manifest: string;
}

/** One row for each label of a run, to find runs by. */
export interface RunLabelsTable {
  tenant: string;
  run_id: string;
  label: string;
  value: string;
}

/** One row for each conversation, which belongs to one tenant and creator (SUP-2). */
export interface SessionsTable {
  tenant: string;
  session_id: string;
  created_by: string;
  created_at: Date;
}

/** One row for each agent of a run; the ending columns are written once (AG-7). */
export interface AgentsTable {
  tenant: string;
  run_id: string;
  instance: string;
  name: string;
  /** Null at the root. */
  parent_instance: string | null;
  parent_name: string | null;
  depth: number;
  /** JSON of domain/manifest, narrowed for this run. */
  manifest: string;
  definition_hash: string;
  /** JSON: an execution budget. */
  execution_budget: string;
  /** When the agent must be over by its own budget; null when only its run's deadline binds it. */
  deadline_at: Date | null;
  priority: string;
  retention: string;
  /** JSON arrays of names. */
  tools: string;
  models: string;
  state: StoredAgentState;
  /** Highest lease epoch seen (RT-2). */
  epoch: bigint;
  /** Reviewed steps (SV-1). */
  steps: number;
  /** Active time that is over, and since when the clock runs; null while it stands (EM-1). */
  active_ms: number;
  active_since: Date | null;
  /** The last sign of life, where a clock is cut that nobody stopped. */
  last_seen_at: Date | null;
  /** Since when it waits for a person; null when it does not. */
  waiting_since: Date | null;
  /** Since when another agent has its slot; null while it may act (SB-4). */
  paused_since: Date | null;
  /** When it was paused or resumed last, as far as is known here. */
  slot_changed_at: Date | null;
  ending_stop_reason: string | null;
  ending_phase: Phase | null;
  ending_call_id: string | null;
  ending_answer: string | null;
  /** One sentence of the worker's own. */
  ending_detail: string | null;
  /** The stop reason is only the worker's word (SV-7). */
  ending_unverified: boolean;
  ended_at: Date | null;
  /** The closed tab as JSON; null while open. */
  tab: string | null;
}

/** One row for each delegation that was approved, unique on tenant, run, parent and call (SUP-9). */
export interface SpawnsTable {
  tenant: string;
  run_id: string;
  parent_instance: string;
  call_id: string;
  child_instance: string;
  child_name: string;
  /** The message that the child's reply answers; empty when there is none. */
  correlation_id: string;
  /** `refused`: there was no slot. `failed`: it could not be set up, or its run or parent ended first. */
  state: 'pending' | 'ready' | 'refused' | 'failed';
  /** The cap's own sentence, or the reason of the failure; null while there is neither. */
  why_not: string | null;
  /** JSON of an agent: the one that was paused for the child. */
  paused: string | null;
  /** The EndChild that came first; null before. */
  end_call_id: string | null;
  end_outcome: string | null;
  /** JSON array of agents that got the child's slot; null until it is given back. */
  resumed: string | null;
  created_at: Date;
}

/** One row for each event of a run's timeline, numbered without gaps (HK-1). */
export interface TimelineTable {
  tenant: string;
  run_id: string;
  sequence: number;
  /** Unique within the run, so that a repeat is the same event. */
  event_id: string;
  recorded_at: Date;
  /** A RunEvent without sequence and time, which are columns. */
  entry: Uint8Array;
}

/** One row for each change of several steps, re-driven until it is done. */
export interface OrdersTable {
  order_id: string;
  kind: string;
  tenant: string;
  run_id: string;
  /** JSON, by kind. */
  payload: string;
  /** The step that is next. */
  step: string;
  state: 'open' | 'done' | 'failed';
  /** Failures since the last step that succeeded. */
  attempts: number;
  next_attempt_at: Date;
  /** Reason of the last failure; never content. */
  last_error: string | null;
  created_at: Date;
}

/** One row for each mutating request of a person that no other row stands for. */
export interface RequestsTable {
  tenant: string;
  subject: string;
  /** Full name of the RPC. */
  method: string;
  request_id: string;
  digest: string;
  recorded_at: Date;
}
