import type { OutboxTable } from '@writ/store';
import type { Generated } from 'kysely';
import type { RateLimitsTable, RateTurnsTable } from './rate-limit-tables.ts';

/** An agent of a run: its definition, status and lease. */
export interface AgentsTable {
  tenant: string;
  run_id: string;
  instance: string;
  name: string;
  kind: string;
  /** Id of the delivery request. */
  request_id: string;
  request_digest: string;
  session_id: string;
  /** JSON. */
  manifest: string;
  /** JSON of its supervision. */
  supervision: string;
  state: string;
  stop_reason: string | null;
  /** JSON array of signal names. */
  waiting_for: string;
  wake_at: Date | null;
  /** Increases with every lease; updates under a lower epoch are fenced (RT-2). */
  epoch: bigint;
  lease_owner: string | null;
  lease_expires_at: Date | null;
  /** JSON of its tokens; null after its end. */
  credentials: string | null;
  deadline_at: Date | null;
  traceparent: string;
  /** Trace context of the latest lease. */
  last_traceparent: string | null;
  journal_length: number;
  /** Highest step whose start and end events were emitted. */
  step_started: number;
  step_ended: number;
  /** JSON array of its events that no request to the supervisor has carried (HK-1). */
  unreported_events: string;
  /** Restarts after failures (SUP-7). */
  failures: number;
  /** Length of the journal at the latest failure. */
  failed_length: number;
  /** Version of the TypeScript code with which the agent started; empty for none. */
  code_version: string;
  /** JSON of the partial final that was proposed when the agent lost its slot; null without one. */
  partial_final: string | null;
  /** Instance that waits for a reply; null when none does. */
  reply_to: string | null;
  created_at: Date;
  ended_at: Date | null;
}

/** Messages to an agent, in order of arrival. */
export interface InboxTable {
  position: Generated<number | bigint>;
  tenant: string;
  run_id: string;
  instance: string;
  message_id: string;
  /** JSON. */
  message: string;
  received_at: Date;
}

/** Signals to an agent, in order of arrival. */
export interface SignalsTable {
  position: Generated<number | bigint>;
  tenant: string;
  run_id: string;
  instance: string;
  request_id: string;
  request_digest: string;
  name: string;
  /** JSON object. */
  payload: string;
  /** JSON of an approval's decision; null without one and after use. */
  decision: string | null;
  received_at: Date;
  /** Set in the transaction that journals the use of the signal. */
  consumed_at: Date | null;
}

/** An agent's journal, one row per effect; append-only (RT-1). */
interface JournalTable {
  tenant: string;
  run_id: string;
  instance: string;
  /** 0 for entries that every replay includes; from 1 for those between two snapshots. */
  segment: number;
  /** Empty for the agent itself; otherwise the path of a concurrent branch. */
  branch: string;
  position: number;
  part: number;
  kind: string;
  args_digest: string;
  call_id: string;
  epoch: bigint;
  /** JSON; null when the value is stored in `payloads`. */
  value: string | null;
  payload_digest: string | null;
  recorded_at: Date;
}

/** Large journal values of a run, each stored once. */
interface PayloadsTable {
  tenant: string;
  run_id: string;
  digest: string;
  content: string;
}

/** The latest snapshot of each agent, from which it resumes (RT-1). */
export interface SnapshotsTable {
  tenant: string;
  run_id: string;
  instance: string;
  /** The segment that is replayed on top of the snapshot. */
  segment: number;
  /** Number of operations before the agent restored its state: segment 0. */
  prologue: number;
  /** Number of operations before the snapshot. */
  position: number;
  /** Total number of items. */
  items: number;
  /** Number of the first item that the agent loads. */
  items_from: number;
  /** JSON of the agent's state. */
  state: string;
  /** JSON of the receipts that are not yet attached to a review. */
  receipts: string;
  saved_at: Date;
}

/** Items that were added to an agent's state between two snapshots. */
interface SnapshotItemsTable {
  tenant: string;
  run_id: string;
  instance: string;
  /** Number of the first item. */
  position: number;
  /** JSON array. */
  items: string;
}

/** Timers, which become signals when they are due (RT-3). */
export interface TimersTable {
  tenant: string;
  run_id: string;
  instance: string;
  /** Unique within the agent. */
  timer_id: string;
  /** Name of the signal. */
  name: string;
  /** JSON object with the payload of the signal. */
  payload: string;
  /** Null while the timer is paused. */
  due_at: Date | null;
  /** Remaining milliseconds while the timer is paused; null while it runs. */
  remaining_ms: bigint | null;
  /** The timer is paused while this agent of the run is parked; null when it is never paused. */
  waits_with: string | null;
}

/** Topic subscriptions (AG-5). */
interface FollowsTable {
  tenant: string;
  topic: string;
  run_id: string;
  instance: string;
  /** Session in which a durable subscription continues; null when it ends with its agent. */
  session_id: string | null;
  /** Name of the agent in whose next run a durable subscription continues; null like session_id. */
  agent: string | null;
  followed_at: Date;
}

/** Turns that an agent's run left in its session (AG-8). */
interface HistoryTable {
  tenant: string;
  session_id: string;
  /** Name of the agent's manifest, because each run has a new instance. */
  agent: string;
  run_id: string;
  /** Position within the run, from 0. */
  position: number;
  /** A chat turn as JSON. */
  turn: string;
  kept_at: Date;
}

/** Cancellations, so that a delivery that arrives later is rejected. */
export interface CancelsTable {
  tenant: string;
  run_id: string;
  request_id: string;
  /** Empty for all agents of the run. */
  instance: string;
  stop_reason: string;
  retention: string;
  /** Number of agents that it ended. */
  ended: number;
  cancelled_at: Date;
}

/** Tables of the worker's database. */
export interface WorkerDatabase {
  agents: AgentsTable;
  inbox: InboxTable;
  signals: SignalsTable;
  journal: JournalTable;
  payloads: PayloadsTable;
  snapshots: SnapshotsTable;
  snapshot_items: SnapshotItemsTable;
  cancels: CancelsTable;
  timers: TimersTable;
  follows: FollowsTable;
  history: HistoryTable;
  rate_limits: RateLimitsTable;
  rate_turns: RateTurnsTable;
  outbox: OutboxTable;
}
