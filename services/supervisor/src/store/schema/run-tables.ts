import type { Phase, TerminalState } from '@writ/kernel';

/** The token bucket of a tenant's calls (SYS-6). */
export interface TenantRatesTable {
  tenant: string;
  tokens: number;
  filled_at: Date;
}

/** The state of a run; the last nine are terminal (AG-7, RT-4). */
export type StoredRunState =
  | 'PENDING'
  | 'RUNNING'
  | 'SUSPENDED'
  | 'PARKED'
  | 'ENDING'
  | TerminalState;

/** The state of an agent, which is live until its ending is recorded. */
export type StoredAgentState = 'RUNNING' | 'SUSPENDED' | 'PARKED' | TerminalState;

/** One row for each run: one execution tree (SUP-2). */
export interface RunsTable {
  tenant: string;
  run_id: string;
  /** The caller's idempotency id; unique with tenant and created_by. */
  request_id: string;
  /** SHA-256 of the request, so that a reused id is detected. */
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
  /** Name of the priority. */
  priority: string;
  retention: string;
  /** JSON object of strings. */
  labels: string;
  trace_id: string;
  /** Trace context of the StartRun call (SYS-1). */
  traceparent: string;
  definition_hash: string;
  /** The selected catalog alias. */
  model: string;
  /** Approved tool calls of all agents. */
  approved_calls: number;
  /** Usage from the closed tabs, as JSON; null before. */
  usage: string | null;
  /** JSON of domain/result; null before the terminal state. */
  result: string | null;
  ended_at: Date | null;
  /** When its contents were deleted (SUP-4). */
  purged_at: Date | null;
}

/** One row for each agent that a run may delegate to, as defined when the run started. */
export interface DefinitionsTable {
  tenant: string;
  run_id: string;
  name: string;
  /** JSON: a manifest of domain/manifest. */
  manifest: string;
}

/** One row for each label of a run. */
export interface RunLabelsTable {
  tenant: string;
  run_id: string;
  label: string;
  value: string;
}

/** One row for each session, which belongs to one tenant and creator (SUP-2). */
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
  /** Deadline by the agent's own budget; null when only its run's deadline applies. */
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
  /** Active time of past periods, and the start of the current one; null while the clock is stopped (EM-1). */
  active_ms: number;
  active_since: Date | null;
  /** Time of the last activity. */
  last_seen_at: Date | null;
  /** Start of the wait for a person; null otherwise. */
  waiting_since: Date | null;
  /** Start of the pause; null while the agent may act (SB-4). */
  paused_since: Date | null;
  /** Time of the last known pause or resumption. */
  slot_changed_at: Date | null;
  ending_stop_reason: string | null;
  ending_phase: Phase | null;
  ending_call_id: string | null;
  ending_answer: string | null;
  /** One sentence of the worker. */
  ending_detail: string | null;
  /** Whether the stop reason is only the worker's claim (SV-7). */
  ending_unverified: boolean;
  ended_at: Date | null;
  /** The closed tab as JSON; null while open. */
  tab: string | null;
}

/** One row for each approved delegation, unique on tenant, run, parent and call (SUP-9). */
export interface SpawnsTable {
  tenant: string;
  run_id: string;
  parent_instance: string;
  call_id: string;
  child_instance: string;
  child_name: string;
  /** The message that the child's answer refers to; empty when there is none. */
  correlation_id: string;
  /** `refused`: no slot was available. `failed`: it could not be set up, or its run or parent ended first. */
  state: 'pending' | 'ready' | 'refused' | 'failed';
  /** The message of the cap, or the reason of the failure; null otherwise. */
  why_not: string | null;
  /** JSON: the agent that was paused for the child. */
  paused: string | null;
  /** The first EndChild call; null before. */
  end_call_id: string | null;
  end_outcome: string | null;
  /** JSON array of the agents that were resumed with the child's slot; null until it is released. */
  resumed: string | null;
  created_at: Date;
}

/** One row for each event of a run's timeline, numbered without gaps (HK-1). */
export interface TimelineTable {
  tenant: string;
  run_id: string;
  sequence: number;
  /** Unique within the run, for deduplication. */
  event_id: string;
  recorded_at: Date;
  /** A RunEvent without sequence and time, which are columns. */
  entry: Uint8Array;
}

/** One row for each order, driven until it is done. */
export interface OrdersTable {
  order_id: string;
  kind: string;
  tenant: string;
  run_id: string;
  /** JSON, by kind. */
  payload: string;
  /** The next step. */
  step: string;
  state: 'open' | 'done' | 'failed';
  /** Failures since the last step that succeeded. */
  attempts: number;
  next_attempt_at: Date;
  /** Reason of the last failure; never content. */
  last_error: string | null;
  created_at: Date;
}

/** One row for each mutating request that no other row identifies. */
export interface RequestsTable {
  tenant: string;
  subject: string;
  /** Full name of the RPC. */
  method: string;
  request_id: string;
  digest: string;
  recorded_at: Date;
}
