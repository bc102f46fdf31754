import { type FreezesDatabase, freezesTable } from '@writ/freeze';
import {
  column,
  type DatabaseOf,
  type OutboxDatabase,
  outboxTable,
  type SlotLeasesDatabase,
  slotLeasesTable,
  type TableOf,
  table,
} from '@writ/store';
import type { SideEffect } from '../domain/tool.ts';

/** One row for each tool call: its intent, then its outcome (TG-5). */
const calls = table('calls', {
  columns: {
    tenant: column.text(),
    run_id: column.text(),
    agent_instance: column.text(),
    call_id: column.text(),
    agent_name: column.text(),
    session_id: column.text(),
    /** Step of the agent, as sent by the worker; used in events and receipts. */
    step: column.integer(),
    tool: column.text(),
    /** Null when the tool is not in the registry, and for a burnt call. */
    side_effect: column.text<SideEffect>().nullable(),
    /** SHA-256 of the exact argument bytes; empty for a burnt call. */
    args_sha256: column.text(),
    writ_id: column.text(),
    definition_digest: column.text(),
    registry_version: column.text(),
    /** JSON array of dotted paths that the receipt must carry. */
    result_fields: column.text(),
    /** W3C trace context of the request that began the call. */
    traceparent: column.text(),
    state: column.text<'intent' | 'ok' | 'error' | 'refused' | 'unknown' | 'burnt'>(),
    /**
     * The replica that processes the call or, after the outcome, the replica that processed it last; empty for a
     * refused, burnt or released call.
     */
    owner: column.text(),
    /** Number of attempts to run the tool. */
    attempts: column.integer(),
    started_at: column.timestamp(),
    /** Null before the outcome. */
    ended_at: column.timestamp().nullable(),
    duration_ms: column.integer().nullable(),
    stop_reason: column.text(),
    /** One sentence for the model. */
    message: column.text(),
    /** JSON of the repetition for which the call was refused; null for other calls. */
    repetition: column.text().nullable(),
    result_kind: column.text<'json' | 'text' | 'image'>().nullable(),
    /** Null without a result, and after a purge. */
    result_content: column.text().nullable(),
    result_media_type: column.text(),
    result_truncated: column.boolean(),
    result_full_size: column.integer(),
    result_full_sha256: column.text(),
    /** The current receipt, null before the outcome, and its revision, 0 before the outcome. */
    receipt: column.text().nullable(),
    revision: column.integer(),
    /** Id of the request that resolved an unknown outcome; null for other calls. */
    resolve_request_id: column.text().nullable(),
    resolve_digest: column.text().nullable(),
    resolved_by: column.text().nullable(),
    resolved_at: column.timestamp().nullable(),
  },
  primaryKey: ['tenant', 'run_id', 'agent_instance', 'call_id'],
  indexes: { calls_without_outcome: { on: ['started_at'], where: ['state', '=', 'intent'] } },
});

/** One row for each receipt (TG-8). */
const receipts = table('receipts', {
  columns: {
    position: column.position(),
    receipt_id: column.text(),
    tenant: column.text(),
    run_id: column.text(),
    agent_instance: column.text(),
    call_id: column.text(),
    revision: column.integer(),
    token: column.text(),
    created_at: column.timestamp(),
    /** Null until the supervisor has recorded or permanently rejected it. */
    acknowledged_at: column.timestamp().nullable(),
  },
  unique: {
    receipts_id: ['receipt_id'],
    receipts_call: ['tenant', 'run_id', 'agent_instance', 'call_id', 'revision'],
  },
  indexes: { receipts_pending: { on: ['position'], where: ['acknowledged_at', 'is', null] } },
});

/**
 * One row for each call counter (TG-2): per run (agent, tool and hash empty), per agent and tool (hash empty), and per
 * agent, tool and arguments.
 */
const counters = table('counters', {
  columns: {
    tenant: column.text(),
    run_id: column.text(),
    agent_instance: column.text(),
    tool: column.text(),
    args_hash: column.text(),
    calls: column.integer(),
    /**
     * Id of the last executed call that this counter counts; null before the first one, and in the counter of a run.
     */
    last_call_id: column.text().nullable(),
  },
  primaryKey: ['tenant', 'run_id', 'agent_instance', 'tool', 'args_hash'],
});

/** Highest lease epoch seen for each agent (RT-2). */
const epochs = table('epochs', {
  columns: {
    tenant: column.text(),
    run_id: column.text(),
    agent_instance: column.text(),
    epoch: column.bigint(),
  },
  primaryKey: ['tenant', 'run_id', 'agent_instance'],
});

/** One row for each call that was rejected because of its writ, until the supervisor acknowledges it (TG-1). */
const refusals = table('refusals', {
  columns: {
    position: column.position(),
    /** Derived from the other columns except the time, so that a repeated attempt has the same id. */
    refusal_id: column.text(),
    tenant: column.text(),
    run_id: column.text(),
    agent_instance: column.text(),
    call_id: column.text(),
    /** WRIT_INVALID, WRIT_EXPIRED or WRIT_MISMATCH. */
    reason: column.text(),
    /** Name of the field that the writ check rejected; empty when it rejected the writ as a whole. */
    field: column.text(),
    /** SHA-256 of the presented writ, in hex. */
    writ_sha256: column.text(),
    /** The worker replica that presented the writ. */
    presented_by: column.text(),
    refused_at: column.timestamp(),
  },
  unique: { refusals_id: ['refusal_id'] },
});

const OWN_TABLES = [calls, receipts, counters, epochs, refusals] as const;

/** Every table of the tool gateway, in the order of creation. */
export const TABLES = [outboxTable, slotLeasesTable, freezesTable, ...OWN_TABLES] as const;

export type CallsTable = TableOf<typeof calls>;
export type RefusalsTable = TableOf<typeof refusals>;

/** The database of the tool gateway. */
export interface GatewayDatabase
  extends OutboxDatabase,
    SlotLeasesDatabase,
    FreezesDatabase,
    DatabaseOf<typeof OWN_TABLES> {}
