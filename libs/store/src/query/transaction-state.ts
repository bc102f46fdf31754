import type { CompiledQuery, Kysely, QueryResult } from 'kysely';

/** Runs a compiled query directly on a connection: synchronously on SQLite. */
type RunQuery = (
  sql: string,
  parameters: readonly unknown[],
) => QueryResult<unknown> | Promise<QueryResult<unknown>>;

/** Sends a compiled statement whose result is not needed; an error of the statement rolls back the transaction. */
type SendWrite = (sql: string, parameters: readonly unknown[]) => void;

/**
 * Tracks the validity of the cached rows of one database. All cached rows become invalid when another process has
 * written to the database or a write was rolled back.
 */
export class CacheGeneration {
  #current = 0;

  /** Increases with every invalidation. */
  get current(): number {
    return this.#current;
  }

  invalidate(): void {
    this.#current += 1;
  }
}

/** The cached rows that a transaction may use while it is open. */
interface CacheScope {
  readonly generation: CacheGeneration;
  readonly isOpen: () => boolean;
}

/** In-memory state of a transaction or of a store's `db`. Discarded with the transaction. */
class TransactionState {
  /** Undefined: queries go through Kysely. */
  run: RunQuery | undefined;
  /** Undefined: a write is awaited like a query. */
  send: SendWrite | undefined;
  /** Undefined: no row is cached. */
  cache: CacheScope | undefined;
  /** Functions to run at the end of the transaction, by owner, in the order of registration. */
  beforeCommit: Map<object, () => Promise<void>> | undefined;
  afterCommit: (() => void)[] | undefined;
  /** The values of each {@link TransactionValue}. */
  values: Map<object, unknown> | undefined;
}

const states = new WeakMap<object, TransactionState>();

function stateOf(trx: object): TransactionState {
  const known = states.get(trx);
  if (known !== undefined) return known;
  const state = new TransactionState();
  states.set(trx, state);
  return state;
}

/**
 * Lets compiled queries of a store's `db` or of a transaction bypass Kysely's layers of promises.
 * @param send sends a statement without waiting for its response; for databases where a statement takes a round trip
 */
export function connectDirectly<DB>(db: Kysely<DB>, run: RunQuery, send?: SendWrite): void {
  const state = stateOf(db);
  state.run = run;
  state.send = send;
}

/** Runs a compiled query: directly if `connectDirectly` was called for `db`, otherwise through Kysely. */
export async function runCompiled<DB, R>(
  db: Kysely<DB>,
  compiled: CompiledQuery<R>,
  parameters: readonly unknown[],
): Promise<QueryResult<R>> {
  const run = states.get(db)?.run;
  if (run === undefined) return await db.executeQuery({ ...compiled, parameters });
  return (await run(compiled.sql, parameters)) as QueryResult<R>;
}

/**
 * Runs a compiled statement whose result the transaction does not need. If statements take a round trip, only the next
 * query or the commit waits for its response.
 */
export async function runCompiledWrite<DB>(
  db: Kysely<DB>,
  compiled: CompiledQuery,
  parameters: readonly unknown[],
): Promise<void> {
  const send = states.get(db)?.send;
  if (send === undefined) await runCompiled(db, compiled, parameters);
  else send(compiled.sql, parameters);
}

/** Whether each query of `db` that waits for its result takes a round trip: in a transaction on PostgreSQL. */
export function takesRoundTrips(db: object): boolean {
  return states.get(db)?.send !== undefined;
}

/** Lets `trx` use cached rows while `isOpen` returns true. */
export function enableRowCache(
  trx: object,
  generation: CacheGeneration,
  isOpen: () => boolean,
): void {
  stateOf(trx).cache = { generation, isOpen };
}

/** Returns the generation of the rows that `trx` may use; undefined when it may use none. */
export function cacheGenerationOf(trx: object): CacheGeneration | undefined {
  const cache = states.get(trx)?.cache;
  // The callback of a rolled back transaction may still run and may have read its own uncommitted writes, which must
  // not be cached.
  return cache?.isOpen() === true ? cache.generation : undefined;
}

/**
 * Runs `work` once at the end of `trx`, inside the transaction; an error that it throws rolls back the transaction.
 * Only the first registration of an `owner` is used. The functions start in the order of registration.
 */
export function beforeCommit(trx: object, owner: object, work: () => Promise<void>): void {
  const state = stateOf(trx);
  state.beforeCommit ??= new Map();
  if (!state.beforeCommit.has(owner)) state.beforeCommit.set(owner, work);
}

/**
 * Runs the functions registered with `beforeCommit` for `trx`; the store calls it once, after the callback of the
 * transaction. The functions run concurrently, so that their statements share a round trip.
 */
export async function runBeforeCommit(trx: object): Promise<void> {
  const state = states.get(trx);
  const registered = state?.beforeCommit;
  if (state === undefined || registered === undefined) return;
  state.beforeCommit = undefined;
  let failure: { readonly cause: unknown } | undefined;
  const run = async (work: () => Promise<void>) => {
    try {
      await work();
    } catch (cause) {
      // Keeps the first error, which caused the others by aborting the transaction.
      failure ??= { cause };
    }
  };
  await Promise.all(Array.from(registered.values(), run));
  if (failure !== undefined) throw failure.cause;
}

/**
 * Runs `action` once `trx` is durable, and never if `trx` is rolled back. For effects that cannot be rolled back, such
 * as a metric or a log line. It must not throw.
 */
export function afterCommit(trx: object, action: () => void): void {
  const state = stateOf(trx);
  state.afterCommit ??= [];
  state.afterCommit.push(action);
}

/** Runs the actions registered with `afterCommit` for `trx`, in order; the store calls it once, after the commit. */
export function runAfterCommit(trx: object): void {
  const state = states.get(trx);
  const registered = state?.afterCommit;
  if (state === undefined || registered === undefined) return;
  state.afterCommit = undefined;
  for (const action of registered) action();
}

/** A value that is kept separately for each transaction, such as the data that it reports after its commit. */
export class TransactionValue<T> {
  readonly #create: () => T;

  constructor(create: () => T) {
    this.#create = create;
  }

  /** Returns the value of a transaction; creates it at the first call. */
  of(trx: object): T {
    const state = stateOf(trx);
    state.values ??= new Map();
    const known = state.values.get(this) as T | undefined;
    if (known !== undefined) return known;
    const value = this.#create();
    state.values.set(this, value);
    return value;
  }
}
