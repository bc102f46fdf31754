import { column, type DatabaseOf, outboxTable, type TableOf, table } from '@writ/store';

/** The external agents that this service stands for. */
const agents = table('agents', {
  columns: {
    tenant: column.text(),
    run_id: column.text(),
    instance: column.text(),
    name: column.text(),
    session_id: column.text(),
    /** Id and digest of the delivery. */
    request_id: column.text(),
    request_digest: column.text(),
    /** JSON array of the catalog aliases that it may use, the default one first. */
    models: column.text(),
    /** JSON of its tokens; null after its end. */
    credentials: column.text().nullable(),
    deadline_at: column.timestamp().nullable(),
    /** Time without a request after which its run ends, in milliseconds. */
    idle_ms: column.integer(),
    /** Latest request, to about a quarter of `idle_ms`. */
    used_at: column.timestamp(),
    traceparent: column.text(),
    stop_reason: column.text().nullable(),
    created_at: column.timestamp(),
    ended_at: column.timestamp().nullable(),
  },
  primaryKey: ['tenant', 'run_id', 'instance'],
  indexes: { agents_alive: { on: ['used_at'], where: ['ended_at', 'is', null] } },
});

/** Model requests by their content, so that a repeat finds its call (AP-2). Digests only. */
const calls = table('calls', {
  columns: {
    tenant: column.text(),
    run_id: column.text(),
    instance: column.text(),
    digest: column.text(),
    /** Number of the equal request, from 1. */
    number: column.integer(),
    /** Whether the client has received the whole answer. */
    delivered: column.boolean(),
    created_at: column.timestamp(),
  },
  primaryKey: ['tenant', 'run_id', 'instance', 'digest', 'number'],
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
export const TABLES = [outboxTable, agents, calls, cancels] as const;

export type AgentsTable = TableOf<typeof agents>;
export type CancelsTable = TableOf<typeof cancels>;

/** The database of agent-proxy. */
export interface ProxyDatabase extends DatabaseOf<typeof TABLES> {}
