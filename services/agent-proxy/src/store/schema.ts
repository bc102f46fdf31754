import { column, type DatabaseOf, outboxTable, type TableOf, table } from '@writ/store';

/** The external agents that this service serves. */
const agents = table('agents', {
  columns: {
    tenant: column.text(),
    run_id: column.text(),
    instance: column.text(),
    name: column.text(),
    /** Null for the root. */
    parent_instance: column.text().nullable(),
    /** SHA-256 of the id by which its client names it; null for the root (AP-6). */
    client_id: column.text().nullable(),
    /** Name of the manifest of its sub-agents; empty when it may not have sub-agents. */
    child_name: column.text(),
    session_id: column.text(),
    /** Id and digest of the delivery. */
    request_id: column.text(),
    request_digest: column.text(),
    /** JSON array of the catalog aliases that it may use, the default one first. */
    models: column.text(),
    /** JSON with the settings for the review of tool calls in model answers; null when they are not reviewed (AP-5). */
    review: column.text().nullable(),
    /** JSON of its tokens; null after its end. */
    credentials: column.text().nullable(),
    deadline_at: column.timestamp().nullable(),
    /** Time without a request after which it ends, in milliseconds. */
    idle_ms: column.integer(),
    /** Time of the latest request, accurate to about a quarter of `idle_ms`. */
    used_at: column.timestamp(),
    traceparent: column.text(),
    stop_reason: column.text().nullable(),
    created_at: column.timestamp(),
    ended_at: column.timestamp().nullable(),
  },
  primaryKey: ['tenant', 'run_id', 'instance'],
  indexes: {
    agents_alive: { on: ['used_at'], where: ['ended_at', 'is', null] },
    agents_by_client_id: {
      on: ['tenant', 'run_id', 'client_id', 'created_at'],
      where: ['client_id', 'is not', null],
    },
  },
});

/**
 * Model requests, identified by a digest of their content, so that a repeat finds its call (AP-2). The content is not
 * stored.
 */
const calls = table('calls', {
  columns: {
    tenant: column.text(),
    run_id: column.text(),
    instance: column.text(),
    digest: column.text(),
    /** Number of the request among equal requests, from 1. */
    number: column.integer(),
    /** Whether the client has received the whole answer. */
    delivered: column.boolean(),
    created_at: column.timestamp(),
  },
  primaryKey: ['tenant', 'run_id', 'instance', 'digest', 'number'],
});

/**
 * Tool calls, identified by a digest of their content, so that a repeat finds its call and its approval (AP-3, AP-4).
 * Arguments and results are not stored.
 */
const toolCalls = table('tool_calls', {
  columns: {
    tenant: column.text(),
    run_id: column.text(),
    instance: column.text(),
    call_id: column.text(),
    tool: column.text(),
    /** SHA-256 of tool and arguments, or of the call id that the client chose. */
    digest: column.text(),
    /** Number of the call among equal calls, from 1. */
    number: column.integer(),
    /** Id of the approval that the call waits or waited for; `outcome` after an unknown outcome; null otherwise. */
    approval_id: column.text().nullable(),
    /**
     * Time of the decision on its approval, or of the cancellation of its task; null before that, and without an
     * approval.
     */
    decided_at: column.timestamp().nullable(),
    /**
     * Time at which the client received a task instead of the result; the call is then executed without a further
     * request.
     */
    task_at: column.timestamp().nullable(),
    /** Expiry of the claim; until then, the sweep that executes decided tasks skips the task. */
    claimed_until: column.timestamp().nullable(),
    /** Time at which the task got its result or was cancelled. */
    task_ended_at: column.timestamp().nullable(),
    /** Whether the client cancelled the task. */
    cancelled: column.boolean(),
    /** Whether a client has received the result, used the approval, or cancelled the task. */
    delivered: column.boolean(),
    /** SHA-256 of the id of the model's call that used the approval; null for tools of the gateway. */
    delivered_to: column.text().nullable(),
    /**
     * The unverified report of the client about a call that it executed itself: time, `ok` or `failed`, SHA-256 and
     * size in bytes of the result (AP-5).
     */
    result_at: column.timestamp().nullable(),
    result_status: column.text().nullable(),
    result_sha256: column.text().nullable(),
    result_bytes: column.integer().nullable(),
    created_at: column.timestamp(),
  },
  primaryKey: ['tenant', 'run_id', 'instance', 'call_id'],
  unique: { tool_calls_number: ['tenant', 'run_id', 'instance', 'digest', 'number'] },
  indexes: {
    tool_calls_tasks: { on: ['decided_at'], where: ['task_at', 'is not', null] },
    tool_calls_by_user: {
      on: ['tenant', 'run_id', 'instance', 'delivered_to'],
      where: ['delivered_to', 'is not', null],
    },
  },
});

/** Handles that clients use to refer to a call: task ids, and the `requestState` of waiting requests (AP-4). */
const handles = table('handles', {
  columns: {
    /** 128 random bits. */
    handle: column.text(),
    tenant: column.text(),
    run_id: column.text(),
    instance: column.text(),
    call_id: column.text(),
    /** Number of the retry, from 1; 0 for a task. */
    retry: column.integer(),
    expires_at: column.timestamp(),
    created_at: column.timestamp(),
  },
  primaryKey: ['handle'],
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
    ended: column.integer(),
    cancelled_at: column.timestamp(),
  },
  primaryKey: ['tenant', 'run_id', 'request_id'],
});

/** Every table of agent-proxy, in the order of creation. */
export const TABLES = [outboxTable, agents, calls, toolCalls, handles, cancels] as const;

export type AgentsTable = TableOf<typeof agents>;
export type ToolCallsTable = TableOf<typeof toolCalls>;

export type HandlesTable = TableOf<typeof handles>;
export type CancelsTable = TableOf<typeof cancels>;

/** The database of agent-proxy. */
export interface ProxyDatabase extends DatabaseOf<typeof TABLES> {}
