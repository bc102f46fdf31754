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

/** The tab of each agent. */
export const tabs = table('tabs', {
  columns: {
    tenant: column.text(),
    run_id: column.text(),
    agent_instance: column.text(),
    agent_name: column.text(),
    parent_name: column.text().nullable(),
    parent_instance: column.text().nullable(),
    session_id: column.text(),
    state: column.text(),
    /** JSON list of catalog aliases. */
    models: column.text(),
    priority: column.integer(),
    deadline_at: column.timestamp().nullable(),
    reserve_tokens: column.bigint(),
    reserve_cost_ppm: column.bigint(),
    retention: column.text(),
    request_id: column.text(),
    request_digest: column.text(),
    /** Key that authenticates the events of the run, in hexadecimal; empty if there is none. */
    event_key: column.text(),
    /** Highest lease epoch of the worker of the agent; null before the first (RT-2). */
    epoch: column.bigint().nullable(),
    opened_at: column.timestamp(),
    closed_at: column.timestamp().nullable(),
  },
  primaryKey: ['tenant', 'run_id', 'agent_instance'],
  indexes: {
    tabs_open: { on: ['tenant', 'run_id', 'agent_instance'], where: ['state', '=', 'open'] },
  },
});

const sum = () => column.bigint().default(0n);

/** Account of each level. All columns except the caps are changed by additions only. */
export const balances = table('balances', {
  columns: {
    /**
     * Level and owner, such as `run:acme/run_1`. Levels that runs share have a row for each slice in use, such as
     * `day:acme/2026-01-31#7`; the row of slice 0 has the id of the level and the caps of a session.
     */
    id: column.text(),
    cap_tokens: column.bigint().nullable(),
    cap_cost: column.bigint().nullable(),
    cap_turns: column.bigint().nullable(),
    /**
     * Subject of the person who set the caps with SetCaps; null if the caps come from a run. Caps of tenants are stored
     * in separate rows.
     */
    caps_set_by: column.text().nullable(),
    used_tokens: sum(),
    used_cost: sum(),
    used_turns: sum(),
    reserved_tokens: sum(),
    reserved_cost: sum(),
    reserved_turns: sum(),
    debt_tokens: sum(),
    debt_cost: sum(),
    debt_turns: sum(),
    input_tokens: sum(),
    cached_input_tokens: sum(),
    cache_write_input_tokens: sum(),
    output_tokens: sum(),
    reasoning_tokens: sum(),
    estimated_turns: sum(),
    failed_calls: sum(),
  },
  primaryKey: ['id'],
});

/** Levels whose cap is divided among their slices. Written only while no other transaction of the tenant is open. */
const escrows = table('escrows', {
  columns: {
    /** Id of the level in `balances`. */
    level: column.text(),
    /** Caps and thresholds for which the grants were computed. */
    terms: column.text(),
    /** Whether settlements within the grants can reach a threshold. */
    is_watched: column.boolean(),
  },
  primaryKey: ['level'],
});

/**
 * Grants: the amount up to which each slice of a level can book without reading the other slices; zero in dimensions in
 * which the level has no cap.
 */
const grants = table('grants', {
  columns: {
    level: column.text(),
    slice: column.integer(),
    tokens: column.bigint(),
    cost: column.bigint(),
    turns: column.bigint(),
  },
  primaryKey: ['level', 'slice'],
});

/** SetCaps requests, recorded so that a repeated request does not undo a later request. */
const capChanges = table('cap_changes', {
  columns: {
    tenant: column.text(),
    request_id: column.text(),
    request_digest: column.text(),
    set_by: column.text(),
    set_at: column.timestamp(),
  },
  primaryKey: ['tenant', 'request_id'],
});

/** Ledger entries: attempts of model calls, reservations, and consumed spending. */
export const entries = table('entries', {
  columns: {
    tenant: column.text(),
    run_id: column.text(),
    agent_instance: column.text(),
    kind: column.text(),
    call_id: column.text(),
    /** From 1 for model calls, else 0. */
    attempt: column.integer(),
    session_id: column.text(),
    agent_name: column.text(),
    model: column.text(),
    /** UTC day whose caps apply to the entry. */
    day: column.text(),
    state: column.text(),
    held_input: column.bigint(),
    held_output: column.bigint(),
    held_cost: column.bigint(),
    held_turns: column.bigint(),
    input_tokens: column.bigint(),
    cached_input_tokens: column.bigint(),
    cache_write_input_tokens: column.bigint(),
    output_tokens: column.bigint(),
    reasoning_tokens: column.bigint(),
    cost: column.bigint(),
    turns: column.bigint(),
    estimated: column.boolean(),
    failed: column.boolean(),
    exceeded: column.boolean(),
    by_expiry: column.boolean(),
    /** Digests of the requests that created and settled it. */
    request_digest: column.text(),
    settle_digest: column.text().nullable(),
    created_at: column.timestamp(),
    expires_at: column.timestamp().nullable(),
    ended_at: column.timestamp().nullable(),
  },
  primaryKey: ['tenant', 'run_id', 'agent_instance', 'kind', 'call_id', 'attempt'],
  indexes: {
    entries_holding: { on: ['expires_at'], where: ['state', 'in', ['reserved', 'sent']] },
    entries_by_time: { on: ['tenant', 'ended_at'], where: ['ended_at', 'is not', null] },
  },
});

/** Model calls and their outcomes (EM-7). */
export const calls = table('calls', {
  columns: {
    tenant: column.text(),
    run_id: column.text(),
    agent_instance: column.text(),
    call_id: column.text(),
    request_digest: column.text(),
    model: column.text(),
    step: column.integer(),
    state: column.text(),
    attempts: column.integer(),
    /** Process of the last attempt; empty without an attempt. */
    owner: column.text(),
    input_tokens: column.bigint(),
    cached_input_tokens: column.bigint(),
    cache_write_input_tokens: column.bigint(),
    output_tokens: column.bigint(),
    reasoning_tokens: column.bigint(),
    cost: column.bigint(),
    estimated: column.boolean(),
    /** JSON of the answer; null without an answer and after a purge. */
    answer: column.text().nullable(),
    purged: column.boolean(),
    /** JSON of the failure. */
    failure: column.text().nullable(),
    /** JSON list of sentences. */
    warnings: column.text(),
    /** JSON list of its last events, encoded and in base64. */
    events: column.text(),
    fitted_output: column.bigint(),
    traceparent: column.text(),
    started_at: column.timestamp(),
    ended_at: column.timestamp().nullable(),
  },
  primaryKey: ['tenant', 'run_id', 'agent_instance', 'call_id'],
});

/**
 * Ids of answers and their items, by the session that received them. Recorded for dialects in which requests can refer
 * to such ids, whether or not the provider stores the answer.
 */
const responseIds = table('response_ids', {
  columns: {
    tenant: column.text(),
    session_id: column.text(),
    id: column.text(),
    /** The account at the provider. */
    provider: column.text(),
    /** Run, instance and id of the call. */
    call: column.text(),
    total_tokens: column.bigint(),
    output_tokens: column.bigint(),
    created_at: column.timestamp(),
  },
  primaryKey: ['tenant', 'session_id', 'id'],
});

/** Number of calls of a tab that failed or that a cap refused, by stop reason; aborted calls are not counted. */
const failures = table('failures', {
  columns: {
    tenant: column.text(),
    run_id: column.text(),
    agent_instance: column.text(),
    stop_reason: column.text(),
    count: column.integer(),
    last_call_id: column.text(),
  },
  primaryKey: ['tenant', 'run_id', 'agent_instance', 'stop_reason'],
});

const OWN_TABLES = [
  tabs,
  balances,
  escrows,
  grants,
  capChanges,
  entries,
  calls,
  responseIds,
  failures,
] as const;

/** Every table of execution-meter, in the order of creation. */
export const TABLES = [outboxTable, slotLeasesTable, freezesTable, ...OWN_TABLES] as const;

export type TabTable = TableOf<typeof tabs>;
export type BalanceTable = TableOf<typeof balances>;
export type EntryTable = TableOf<typeof entries>;
export type CallTable = TableOf<typeof calls>;

/** The database of execution-meter. */
export interface MeterDatabase
  extends OutboxDatabase,
    SlotLeasesDatabase,
    FreezesDatabase,
    DatabaseOf<typeof OWN_TABLES> {}
