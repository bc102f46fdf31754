import { column, type DatabaseOf, outboxTable, type TableOf, table } from '@writ/store';

/** An agent of a run: its definition, status and lease. */
export const agents = table('agents', {
  columns: {
    tenant: column.text(),
    run_id: column.text(),
    instance: column.text(),
    name: column.text(),
    kind: column.text(),
    /** Id of the delivery request. */
    request_id: column.text(),
    request_digest: column.text(),
    session_id: column.text(),
    /** JSON. */
    manifest: column.text(),
    /** JSON of the agent's `Supervision`: its position in the tree of its run, and its limits. */
    supervision: column.text(),
    state: column.text(),
    stop_reason: column.text().nullable(),
    /** JSON array of signal names. */
    waiting_for: column.text(),
    wake_at: column.timestamp().nullable(),
    /** JSON object of the signals that the agent waits for, each with the start time of the wait. */
    waiting_since: column.text().nullable(),
    /** Increases with every lease; updates under a lower epoch are fenced (RT-2). */
    epoch: column.bigint(),
    lease_owner: column.text().nullable(),
    lease_expires_at: column.timestamp().nullable(),
    /** JSON of the tokens of the agent; null after its end. */
    credentials: column.text().nullable(),
    deadline_at: column.timestamp().nullable(),
    traceparent: column.text(),
    /** Trace context of the latest lease. */
    last_traceparent: column.text().nullable(),
    journal_length: column.integer(),
    /** Highest step whose STEP_START was stored. */
    step_started: column.integer(),
    /** Highest step whose STEP_END was stored. */
    step_ended: column.integer(),
    /**
     * JSON of the tool list and the session history that were read at the delivery (RT-1); null if the worker did not
     * run the agent at once, and after the first commit of the agent.
     */
    first_reads: column.text().nullable(),
    /** JSON array of the events of the agent that the supervisor has not acknowledged yet (HK-1). */
    unreported_events: column.text(),
    /**
     * Number of restarts after failures without progress in between (SUP-7), or of waits for a worker with matching
     * code (BD-6).
     */
    failures: column.integer(),
    /** Length of the journal at the latest failure; -1 when `failures` counts waits for a worker with matching code. */
    failed_length: column.integer(),
    /** Version of the TypeScript code with which the agent started; empty when its definition has no version. */
    code_version: column.text(),
    /**
     * JSON of the partial answer that was proposed as the final answer when the agent lost its slot; null if there is
     * none.
     */
    partial_final: column.text().nullable(),
    /** Instance that waits for a reply; null when no agent waits for a reply. */
    reply_to: column.text().nullable(),
    created_at: column.timestamp(),
    ended_at: column.timestamp().nullable(),
  },
  primaryKey: ['tenant', 'run_id', 'instance'],
  indexes: {
    agents_running: { on: ['lease_expires_at', 'created_at'], where: ['state', '=', 'RUNNING'] },
    agents_timed: { on: ['wake_at'], where: ['wake_at', 'is not', null] },
    agents_leased: { on: ['lease_owner'], where: ['lease_owner', 'is not', null] },
    // Inactive agents are read in pages and counted by state without a scan of other rows.
    agents_preempted: {
      on: ['tenant', 'run_id', 'instance'],
      where: [
        ['state', '=', 'PARKED'],
        ['wake_at', 'is', null],
      ],
    },
    agents_alive: {
      on: ['state', 'tenant', 'run_id', 'instance'],
      where: ['ended_at', 'is', null],
    },
  },
});

/** Messages to an agent, in order of arrival. */
const inbox = table('inbox', {
  columns: {
    position: column.position(),
    tenant: column.text(),
    run_id: column.text(),
    instance: column.text(),
    message_id: column.text(),
    /** JSON. */
    message: column.text(),
    received_at: column.timestamp(),
  },
  unique: { inbox_id: ['tenant', 'run_id', 'instance', 'message_id'] },
});

/** Signals to an agent, in order of arrival. */
const signals = table('signals', {
  columns: {
    position: column.position(),
    tenant: column.text(),
    run_id: column.text(),
    instance: column.text(),
    request_id: column.text(),
    request_digest: column.text(),
    name: column.text(),
    /** JSON object. */
    payload: column.text(),
    /** JSON of the decision of an approval signal; null for other signals and after use. */
    decision: column.text().nullable(),
    /** Subject of the client that sent the signal; null when no client sent it. */
    sender: column.text().nullable(),
    received_at: column.timestamp(),
    /** Set in the transaction that journals the use of the signal. */
    consumed_at: column.timestamp().nullable(),
  },
  unique: { signals_id: ['tenant', 'run_id', 'instance', 'request_id'] },
  indexes: {
    signals_pending: {
      on: ['tenant', 'run_id', 'instance', 'name', 'position'],
      where: ['consumed_at', 'is', null],
    },
  },
});

/** An agent's journal, one row per effect; append-only (RT-1). */
const journal = table('journal', {
  columns: {
    tenant: column.text(),
    run_id: column.text(),
    instance: column.text(),
    /**
     * 0 for the entries before the agent restores its state, which every replay includes; then 1 up to the first
     * snapshot, 2 up to the second, and so on.
     */
    segment: column.integer(),
    /** Empty for the agent itself; otherwise the path of a concurrent branch. */
    branch: column.text(),
    position: column.integer(),
    part: column.integer(),
    kind: column.text(),
    args_digest: column.text(),
    call_id: column.text(),
    epoch: column.bigint(),
    /** JSON; null when the value is stored in `payloads`. */
    value: column.text().nullable(),
    payload_digest: column.text().nullable(),
    recorded_at: column.timestamp(),
  },
  primaryKey: ['tenant', 'run_id', 'instance', 'segment', 'branch', 'position', 'part'],
  indexes: {
    // The log entries of a run are read in order of time, without a scan of the other journal entries.
    journal_logs: {
      on: ['tenant', 'run_id', 'recorded_at', 'instance', 'branch', 'position'],
      where: ['kind', '=', 'log'],
    },
  },
});

/** Large journal values of a run, each stored once. */
const payloads = table('payloads', {
  columns: {
    tenant: column.text(),
    run_id: column.text(),
    digest: column.text(),
    content: column.text(),
  },
  primaryKey: ['tenant', 'run_id', 'digest'],
});

/** The latest snapshot of each agent, from which it resumes (RT-1). */
const snapshots = table('snapshots', {
  columns: {
    tenant: column.text(),
    run_id: column.text(),
    instance: column.text(),
    /** The segment that is replayed on top of the snapshot. */
    segment: column.integer(),
    /** Number of the agent's own operations in segment 0, that is, before it restored its state. */
    prologue: column.integer(),
    /** Number of the agent's own operations before the snapshot. */
    position: column.integer(),
    /** Total number of items. */
    items: column.integer(),
    /** Number of the first item that the agent loads. */
    items_from: column.integer(),
    /** JSON of the agent's state. */
    state: column.text(),
    /** JSON of the receipts, with their results, that the supervisor has not yet acknowledged. */
    receipts: column.text(),
    saved_at: column.timestamp(),
  },
  primaryKey: ['tenant', 'run_id', 'instance'],
});

/** Items of an agent's state; each row contains the items that were added since the previous snapshot. */
const snapshotItems = table('snapshot_items', {
  columns: {
    tenant: column.text(),
    run_id: column.text(),
    instance: column.text(),
    /** Number of the first item. */
    position: column.integer(),
    /** JSON array. */
    items: column.text(),
  },
  primaryKey: ['tenant', 'run_id', 'instance', 'position'],
});

/** Timers, which become signals when they are due (RT-3). */
const timers = table('timers', {
  columns: {
    tenant: column.text(),
    run_id: column.text(),
    instance: column.text(),
    /** Unique within the agent. */
    timer_id: column.text(),
    /** Name of the signal. */
    name: column.text(),
    /** JSON object with the payload of the signal. */
    payload: column.text(),
    /** Null while the timer is paused. */
    due_at: column.timestamp().nullable(),
    /** Remaining milliseconds while the timer is paused; null while it runs. */
    remaining_ms: column.bigint().nullable(),
    /** The timer is paused while this agent of the run is parked; null when it is never paused. */
    waits_with: column.text().nullable(),
  },
  primaryKey: ['tenant', 'run_id', 'instance', 'timer_id'],
  indexes: { timers_due: { on: ['due_at'], where: ['due_at', 'is not', null] } },
});

/** Topic subscriptions (AG-5). */
const follows = table('follows', {
  columns: {
    tenant: column.text(),
    topic: column.text(),
    run_id: column.text(),
    instance: column.text(),
    /** Session in which a durable subscription continues; null for a subscription that ends with its agent. */
    session_id: column.text().nullable(),
    /** Name of the agent that continues a durable subscription in its next run; null when session_id is null. */
    agent: column.text().nullable(),
    followed_at: column.timestamp(),
  },
  primaryKey: ['tenant', 'topic', 'run_id', 'instance'],
  indexes: {
    follows_durable: {
      on: ['tenant', 'session_id', 'agent', 'topic'],
      where: ['agent', 'is not', null],
    },
  },
});

/** Turns that an agent's run stored in its session (AG-8). */
const history = table('history', {
  columns: {
    tenant: column.text(),
    session_id: column.text(),
    /** Name of the agent, not its instance, because the instance differs in each run. */
    agent: column.text(),
    run_id: column.text(),
    /** Position within the run, from 0. */
    position: column.integer(),
    /** A chat turn as JSON. */
    turn: column.text(),
    kept_at: column.timestamp(),
  },
  primaryKey: ['tenant', 'session_id', 'agent', 'kept_at', 'run_id', 'position'],
});

/** Cancellations, so that a delivery that arrives later is rejected. */
const cancels = table('cancels', {
  columns: {
    tenant: column.text(),
    run_id: column.text(),
    request_id: column.text(),
    /** Empty for all agents of the run. */
    instance: column.text(),
    stop_reason: column.text(),
    retention: column.text(),
    /** Number of agents that the cancellation ended. */
    ended: column.integer(),
    cancelled_at: column.timestamp(),
  },
  primaryKey: ['tenant', 'run_id', 'request_id'],
});

/** The number of permits that a shared rate limit has granted. */
const rateLimits = table('rate_limits', {
  columns: {
    tenant: column.text(),
    /** The run whose agents share the limit; empty when agents of several runs share it. */
    run_id: column.text(),
    name: column.text(),
    /** Number of granted permits. */
    turns: column.bigint(),
  },
  primaryKey: ['tenant', 'run_id', 'name'],
});

/** The latest permits of a rate limit: at most one row for each call that the limit allows per period. */
const rateTurns = table('rate_turns', {
  columns: {
    tenant: column.text(),
    /** As in `rate_limits`. */
    run_id: column.text(),
    name: column.text(),
    /** Number of the permit, from 1. */
    turn: column.bigint(),
    /** Time from which the permit is valid. */
    at: column.timestamp(),
  },
  primaryKey: ['tenant', 'run_id', 'name', 'turn'],
});

/** Every table of the worker, in the order of creation. */
export const TABLES = [
  outboxTable,
  agents,
  inbox,
  signals,
  journal,
  payloads,
  snapshots,
  snapshotItems,
  timers,
  follows,
  history,
  cancels,
  rateLimits,
  rateTurns,
] as const;

export type AgentsTable = TableOf<typeof agents>;
export type InboxTable = TableOf<typeof inbox>;
export type SignalsTable = TableOf<typeof signals>;
export type SnapshotsTable = TableOf<typeof snapshots>;
export type TimersTable = TableOf<typeof timers>;
export type CancelsTable = TableOf<typeof cancels>;

/** The database of the worker. */
export interface WorkerDatabase extends DatabaseOf<typeof TABLES> {}
