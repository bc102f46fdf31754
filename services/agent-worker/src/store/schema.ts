import type { OutboxTable } from '@writ/store';
import type { Generated } from 'kysely';

/** One agent of one run: its definition, where it stands, and who runs it. */
export interface AgentsTable {
  tenant: string;
  run_id: string;
  instance: string;
  name: string;
  kind: string;
  /** The delivery that brought it. */
  request_id: string;
  request_digest: string;
  session_id: string;
  /** JSON. */
  manifest: string;
  /** JSON of its place in the tree. */
  supervision: string;
  state: string;
  stop_reason: string | null;
  /** JSON array of signal names. */
  waiting_for: string;
  wake_at: Date | null;
  /** Rises with every lease; a write under a lower one changes nothing (RT-2). */
  epoch: bigint;
  lease_owner: string | null;
  lease_expires_at: Date | null;
  /** JSON of its tokens; null once it has ended. */
  credentials: string | null;
  deadline_at: Date | null;
  traceparent: string;
  /** Trace context of the latest lease. */
  last_traceparent: string | null;
  journal_length: number;
  /** Highest step whose start, and whose end, was told of. */
  step_started: number;
  step_ended: number;
  /** Restarts after failures (SUP-7). */
  failures: number;
  /** Instance that asked it and waits; null when nobody does. */
  reply_to: string | null;
  created_at: Date;
  ended_at: Date | null;
}

/** Messages to an agent, in the order in which they came. */
interface InboxTable {
  position: Generated<number | bigint>;
  tenant: string;
  run_id: string;
  instance: string;
  message_id: string;
  /** JSON. */
  message: string;
  received_at: Date;
}

/** Signals to an agent, in the order in which they came. */
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
  /** JSON of the decision that an approval brings; null without one, and once it was used. */
  decision: string | null;
  received_at: Date;
  /** Set in the transaction that journals what the agent did with it. */
  consumed_at: Date | null;
}

/** What an agent did, one row an effect (RT-1). Rows are only added. */
interface JournalTable {
  tenant: string;
  run_id: string;
  instance: string;
  /** 0 for what is replayed whenever the agent runs again; from 1 up between its snapshots. */
  segment: number;
  /** Empty for the agent itself; the path of a branch that runs beside others. */
  branch: string;
  position: number;
  part: number;
  kind: string;
  args_digest: string;
  call_id: string;
  epoch: bigint;
  /** JSON; null when it is large and lies in payloads. */
  value: string | null;
  payload_digest: string | null;
  recorded_at: Date;
}

/** Large values of a run's journals, stored once each. */
interface PayloadsTable {
  tenant: string;
  run_id: string;
  digest: string;
  content: string;
}

/** Where an agent goes on from instead of its start; one row an agent (RT-1). */
export interface SnapshotsTable {
  tenant: string;
  run_id: string;
  instance: string;
  /** The journal from here on is replayed over it. */
  segment: number;
  /** Operations before the agent took its state back: segment 0. */
  prologue: number;
  /** Operations before the snapshot. */
  position: number;
  /** Items beside it, all together. */
  items: number;
  /** The first item that the agent needs back. */
  items_from: number;
  /** JSON of the agent's state. */
  state: string;
  /** JSON of the receipts that the supervisor had not been shown yet. */
  receipts: string;
  saved_at: Date;
}

/** What an agent's state grew by between two snapshots, stored once. */
interface SnapshotItemsTable {
  tenant: string;
  run_id: string;
  instance: string;
  /** Number of the first item. */
  position: number;
  /** JSON array. */
  items: string;
}

/** Signals that come at a time: ends of waits (RT-3). */
export interface TimersTable {
  tenant: string;
  run_id: string;
  instance: string;
  /** Unique within the agent. */
  timer_id: string;
  /** The signal that it turns into. */
  name: string;
  /** JSON object that the signal brings. */
  payload: string;
  /** Null while it stands still. */
  due_at: Date | null;
  /** What is left of it, in milliseconds, while it stands still; null while it runs. */
  remaining_ms: bigint | null;
  /** It stands still while this agent of the run is parked; null when it never does. */
  waits_with: string | null;
}

/** Who follows which topic (AG-5). */
interface FollowsTable {
  tenant: string;
  topic: string;
  run_id: string;
  instance: string;
  followed_at: Date;
}

/** One turn that an agent's run left in its session (AG-8). */
interface HistoryTable {
  tenant: string;
  session_id: string;
  /** Name of the agent's manifest: each run has an instance of its own. */
  agent: string;
  run_id: string;
  /** Within the run, from 0. */
  position: number;
  /** A chat turn as JSON. */
  turn: string;
  kept_at: Date;
}

/** Orders to end agents, so that a delivery that comes later than its cancellation is refused. */
export interface CancelsTable {
  tenant: string;
  run_id: string;
  request_id: string;
  /** Empty means every agent of the run. */
  instance: string;
  stop_reason: string;
  retention: string;
  /** Agents that it ended. */
  ended: number;
  cancelled_at: Date;
}

/** Everything that the worker remembers. */
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
  outbox: OutboxTable;
}
