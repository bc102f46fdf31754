/**
 * Counts the transactions and round trips of a service to PostgreSQL; loaded with `--import` before the service.
 * Each connection to the socket {@link COUNTS_SOCKET} receives the current counts as JSON.
 */
import { createRequire } from 'node:module';
import { createServer, type Socket } from 'node:net';
import { isMainThread } from 'node:worker_threads';

/** The environment variable with the path of the socket. */
const COUNTS_SOCKET = 'BENCH_COUNTS_SOCKET';

/** The traffic of a process to PostgreSQL since its start. */
export interface PostgresTraffic {
  /** Transactions, statements outside of transactions included. */
  readonly transactions: number;
  /** Flushes of the protocol writer: statements that are sent together are one round trip. */
  readonly roundTrips: number;
  /**
   * Round trips by content: verb and table of each statement, and whether the statement runs outside of a transaction.
   */
  readonly byContent: Readonly<Record<string, number>>;
}

interface PgClient {
  readonly connection: { readonly stream: Socket };
  connect(...values: unknown[]): unknown;
  query(...values: unknown[]): unknown;
}

const TABLE = /\b(?:from|into|update)\s+(?:"?\w+"?\.)?"?(\w+)"?/i;
const FUNCTION = /^\s*select\s+(pg_\w+)\(/i;

function countTraffic(): PostgresTraffic {
  const traffic = { transactions: 0, roundTrips: 0, byContent: {} as Record<string, number> };
  const open = new WeakSet<PgClient>();
  /** Statements of each client since its last flush. */
  const unsent = new WeakMap<PgClient, string[]>();
  const flushed = (client: PgClient): void => {
    traffic.roundTrips += 1;
    const content = unsent.get(client)?.splice(0).join(' + ') || 'protocol';
    traffic.byContent[content] = (traffic.byContent[content] ?? 0) + 1;
  };
  const queried = (client: PgClient, sql: string): void => {
    const verb = sql.trim().split(/[\s;]/)[0]?.toLowerCase() ?? '';
    const isAlone = !open.has(client) && verb !== 'begin';
    const isEnd = verb === 'commit' || (verb === 'rollback' && !/^rollback to\b/i.test(sql));
    if (verb === 'begin') open.add(client);
    else if (isEnd || isAlone) traffic.transactions += 1;
    if (isEnd) open.delete(client);
    const object = verb === 'begin' ? undefined : (FUNCTION.exec(sql) ?? TABLE.exec(sql))?.[1];
    const parts = [verb, object, isAlone ? '(outside of a transaction)' : undefined];
    unsent.get(client)?.push(parts.filter((part) => part !== undefined).join(' '));
  };
  const { prototype } = pgClient();
  const { connect, query } = prototype;
  prototype.connect = function (...values) {
    unsent.set(this, []);
    const { stream } = this.connection;
    for (const method of ['_write', '_writev'] as const) {
      const original = stream[method] as (...chunks: unknown[]) => unknown;
      const counted = (...chunks: unknown[]): unknown => {
        flushed(this);
        return original.apply(stream, chunks);
      };
      Object.defineProperty(stream, method, { value: counted });
    }
    return connect.apply(this, values);
  };
  prototype.query = function (...values) {
    const [first] = values as [string | { readonly text: string }];
    queried(this, typeof first === 'string' ? first : first.text);
    return query.apply(this, values);
  };
  return traffic;
}

/** Returns the pg client class that libs/store uses; pg is a dependency of libs/store, not of this program. */
function pgClient(): { readonly prototype: PgClient } {
  return createRequire(import.meta.resolve('@writ/store'))('pg').Client;
}

const path = process.env[COUNTS_SOCKET];
if (path !== undefined && isMainThread) {
  const traffic = countTraffic();
  createServer((socket) => socket.end(JSON.stringify(traffic)))
    .listen(path)
    .unref();
}
