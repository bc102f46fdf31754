import type { AgentKind, TerminalState } from '@writ/kernel';
import { column, table } from '@writ/store';

/** The state of a run; those of TerminalState are terminal (AG-7, RT-4). */
export type StoredRunState =
  | 'PENDING'
  | 'RUNNING'
  | 'SUSPENDED'
  | 'WAITING_FOR_INPUT'
  | 'PARKED'
  | 'ENDING'
  | TerminalState;

/** One row for each run: one execution tree (SUP-2). */
export const runs = table('runs', {
  columns: {
    tenant: column.text(),
    run_id: column.text(),
    /** The caller's idempotency id; unique with tenant and created_by. */
    request_id: column.text(),
    /** SHA-256 of the request, so that a reused id is detected. */
    request_digest: column.text(),
    session_id: column.text(),
    agent_name: column.text(),
    agent_kind: column.text<AgentKind>(),
    root_instance: column.text(),
    goal: column.text(),
    /** The caller's structured input; empty when there is none. */
    data_json: column.text(),
    state: column.text<StoredRunState>(),
    created_by: column.text(),
    created_at: column.timestamp(),
    /** Time of the last change of `state`, or of the creation of the run. */
    changed_at: column.timestamp(),
    deadline_at: column.timestamp().nullable(),
    /** JSON: an execution budget of domain/manifest. */
    run_budget: column.text(),
    /** JSON: the caps that the run sets for its session; null when it sets none. */
    session_budget: column.text().nullable(),
    /** JSON: a spawn budget of domain/manifest. */
    spawn_budget: column.text(),
    /** Name of the priority. */
    priority: column.text(),
    retention: column.text(),
    /** JSON object of strings. */
    labels: column.text(),
    trace_id: column.text(),
    /** Trace context of the call that started the run, such as StartRun or OpenExternalRun (SYS-1). */
    traceparent: column.text(),
    definition_hash: column.text(),
    /**
     * Key with which the meter computes the MAC of its events, which workers forward to the supervisor (HK-1), in
     * hexadecimal digits.
     */
    event_key: column.text(),
    /**
     * The agent key that opened the run, and the SHA-256 of the conversation, which is empty for the default
     * conversation; both are null for a run that no agent key opened (AP-1).
     */
    key_id: column.text().nullable(),
    conversation: column.text().nullable(),
    /** The selected catalog alias. */
    model: column.text(),
    /** Approved tool calls of all agents. */
    approved_calls: column.integer().default(0),
    /** Usage from the closed tabs, as JSON; null until the tabs are closed. */
    usage: column.text().nullable(),
    /** JSON of domain/result; null before the terminal state. */
    result: column.text().nullable(),
    ended_at: column.timestamp().nullable(),
    /** When its contents were deleted (SUP-4). */
    purged_at: column.timestamp().nullable(),
  },
  primaryKey: ['tenant', 'run_id'],
  unique: { runs_request: ['tenant', 'created_by', 'request_id'] },
  indexes: {
    runs_by_time: { on: ['tenant', 'created_at', 'run_id'] },
    runs_by_change: { on: ['tenant', 'changed_at', 'run_id'] },
    runs_by_agent: { on: ['tenant', 'agent_name', 'created_at', 'run_id'] },
    runs_by_session: { on: ['tenant', 'session_id', 'created_at', 'run_id'] },
    runs_alive: { on: ['deadline_at'], where: ['ended_at', 'is', null] },
    runs_unended: { on: ['tenant', 'run_id'], where: ['ended_at', 'is', null] },
    runs_by_key: {
      on: ['tenant', 'key_id', 'conversation', 'created_at'],
      where: ['key_id', 'is not', null],
    },
    runs_to_purge: { on: ['retention', 'ended_at'], where: ['purged_at', 'is', null] },
  },
});

/** One row for each label of a run. */
export const runLabels = table('run_labels', {
  columns: {
    tenant: column.text(),
    run_id: column.text(),
    label: column.text(),
    value: column.text(),
  },
  primaryKey: ['tenant', 'label', 'value', 'run_id'],
});

/** One row for each agent that a run may delegate to, as defined when the run started. */
export const definitions = table('definitions', {
  columns: {
    tenant: column.text(),
    run_id: column.text(),
    name: column.text(),
    /** JSON: a manifest of domain/manifest. */
    manifest: column.text(),
  },
  primaryKey: ['tenant', 'run_id', 'name'],
});

/** One row for each session, which belongs to one tenant and creator (SUP-2). */
export const sessions = table('sessions', {
  columns: {
    tenant: column.text(),
    session_id: column.text(),
    created_by: column.text(),
    created_at: column.timestamp(),
  },
  primaryKey: ['tenant', 'session_id'],
});

/** One row for each event of a run's timeline, numbered without gaps (HK-1). */
export const timeline = table('timeline', {
  columns: {
    tenant: column.text(),
    run_id: column.text(),
    sequence: column.integer(),
    /** Unique within the run, for deduplication. */
    event_id: column.text(),
    recorded_at: column.timestamp(),
    /** A RunEvent without sequence and time, which are columns. */
    entry: column.bytes(),
  },
  primaryKey: ['tenant', 'run_id', 'sequence'],
  unique: { timeline_event: ['tenant', 'run_id', 'event_id'] },
});
