import { column, type DatabaseOf, outboxTable, type RowOf, table } from '@writ/store';
import type { Kysely, Transaction } from 'kysely';

/** One pool for each run. */
export const pools = table('pools', {
  columns: {
    tenant: column.text(),
    run_id: column.text(),
    /** Changes with every write to the pool or to one of its agents. */
    stamp: column.text(),
    /** Session of the run, for events; empty when it is unknown. */
    session_id: column.text(),
    /** Instance of the root; empty if the run ended before its pool was opened. */
    root: column.text(),
    max_agents: column.integer(),
    allow_preempt: column.boolean(),
    /** Null: no limit. */
    max_total_spawns: column.bigint().nullable(),
    /** Null: no limit. */
    max_depth: column.bigint().nullable(),
    deadline_at: column.timestamp().nullable(),
    sequence: column.bigint(),
    total_spawns: column.bigint(),
    total_pauses: column.bigint(),
    total_refusals: column.bigint(),
    /** The request that opened the pool, and the digest of its content (SB-9). */
    request_id: column.text(),
    request_digest: column.text(),
    /** Trace context of the call that opened the pool, used for events that are not caused by a call (SYS-1). */
    traceparent: column.text(),
    opened_at: column.timestamp(),
    closed_at: column.timestamp().nullable(),
  },
  primaryKey: ['tenant', 'run_id'],
  indexes: {
    pools_closed: { on: ['closed_at'], where: ['closed_at', 'is not', null] },
    pools_open: { on: ['tenant', 'run_id'], where: ['closed_at', 'is', null] },
  },
});

/** The agents of each pool. */
export const members = table('members', {
  columns: {
    tenant: column.text(),
    run_id: column.text(),
    instance: column.text(),
    name: column.text(),
    parent_instance: column.text().nullable(),
    parent_name: column.text().nullable(),
    depth: column.bigint(),
    /** Priority as its numeric weight (SUP-3). */
    priority: column.integer(),
    state: column.text(),
    /** Order of the first acquisition. */
    acquired: column.bigint(),
    /** Position in the queue; null when the agent is not queued. */
    queue_position: column.bigint().nullable(),
    expires_at: column.timestamp().nullable(),
    epoch: column.bigint(),
    acquired_at: column.timestamp(),
    /** Start of the reported wait; null while the agent does not wait. */
    waiting_since: column.timestamp().nullable(),
    /** JSON array of the signals that the agent waits for; null while the agent does not wait. */
    waiting_for: column.text().nullable(),
    /** Sequence number of the change that began the wait; null while the agent does not wait. */
    waiting_sequence: column.bigint().nullable(),
  },
  primaryKey: ['tenant', 'run_id', 'instance'],
  indexes: {
    members_live: { on: ['tenant', 'run_id'], where: ['state', '!=', 'released'] },
    members_expiring: { on: ['expires_at'], where: ['expires_at', 'is not', null] },
  },
});

/** The answers to mutating calls, so that a repeated request gets the same answer (SB-9). */
export const requests = table('requests', {
  columns: {
    tenant: column.text(),
    run_id: column.text(),
    instance: column.text(),
    rpc: column.text(),
    request_id: column.text(),
    digest: column.text(),
    /** JSON. */
    answer: column.text(),
    answered_at: column.timestamp(),
  },
  primaryKey: ['tenant', 'run_id', 'instance', 'rpc', 'request_id'],
});

/** Every table of spawn-budget, in the order of creation. */
export const TABLES = [outboxTable, pools, members, requests] as const;

export type PoolRow = RowOf<typeof pools>;
export type MemberRow = RowOf<typeof members>;
export type RequestRow = RowOf<typeof requests>;

/** The database of spawn-budget. */
export interface SpawnDatabase extends DatabaseOf<typeof TABLES> {}

/** A transaction of the store. */
export type SpawnTransaction = Transaction<SpawnDatabase>;

/** Reads rows: the store's `db`, or a transaction. */
export type SpawnReader = Kysely<SpawnDatabase>;
