import { InternalError } from '@writ/kernel';
import type { Compilable, CompiledQuery, Kysely, QueryResult } from 'kysely';
import { literalConstants } from './literal-constants.ts';
import { runCompiled, runCompiledWrite } from './transaction-state.ts';

/** Runs a query with the given values on a store's `db` or in a transaction. */
export type PreparedQuery<DB, P, R> = (db: Kysely<DB>, values: P) => Promise<QueryResult<R>>;

/** Runs a statement with the given values in a transaction. */
export type PreparedWrite<DB, P> = (trx: Kysely<DB>, values: P) => Promise<void>;

/** Placeholder for a value that is passed when the query runs. */
class Placeholder {
  readonly name: string;

  constructor(name: string) {
    this.name = name;
  }

  /** Throws, because a query that reads a value while it is built would be valid only for that value. */
  [Symbol.toPrimitive](): never {
    throw new InternalError(
      'STORE_INVALID_PREPARED_QUERY',
      `The value ${this.name} of a prepared query was read while the query was built.`,
    );
  }
}

/**
 * Builds and compiles a query on its first run and caches the SQL, because building takes longer than running. `build`
 * receives placeholders, which it may only pass to the query builder: the SQL must not depend on the values. String
 * constants in `build` are compiled as literals.
 */
export function prepareQuery<DB, P extends object, R>(
  build: (db: Kysely<DB>, values: P) => Compilable<R>,
): PreparedQuery<DB, P, R> {
  const prepare = compiledOnce(build);
  return (db, values) => {
    const { compiled, parameters } = prepare(db, values);
    return runCompiled(db, compiled, parameters);
  };
}

/**
 * Like {@link prepareQuery}, for a statement whose result the transaction does not need. On PostgreSQL the
 * transaction continues without waiting for the response, so consecutive statements share a round trip, and an error
 * fails the next query or the commit (CO-1). Later queries of the transaction see the effect of the statement.
 */
export function prepareWrite<DB, P extends object>(
  build: (db: Kysely<DB>, values: P) => Compilable<unknown>,
): PreparedWrite<DB, P> {
  const prepare = compiledOnce(build);
  return async (trx, values) => {
    const { compiled, parameters } = prepare(trx, values);
    await runCompiledWrite(trx, compiled, parameters);
  };
}

/**
 * Returns a function that builds and compiles the query at its first call and returns it with the parameters for the
 * given values.
 */
function compiledOnce<DB, P extends object, R>(
  build: (db: Kysely<DB>, values: P) => Compilable<R>,
): (db: Kysely<DB>, values: P) => { compiled: CompiledQuery<R>; parameters: readonly unknown[] } {
  const compiledFor = new WeakMap<object, Prepared<P, R>>();
  return (db, values) => {
    // The SQL depends on the dialect, not on the database.
    const dialect = db.getExecutor().adapter.constructor;
    let prepared = compiledFor.get(dialect);
    if (prepared === undefined) {
      prepared = preparedFrom(build(db.withPlugin(literalConstants), placeholders<P>()).compile());
      compiledFor.set(dialect, prepared);
    }
    const { compiled, sources } = prepared;
    const parameters = new Array<unknown>(sources.length);
    let index = 0;
    for (const source of sources) {
      parameters[index] = source.name === undefined ? source.constant : values[source.name];
      index += 1;
    }
    return { compiled, parameters };
  };
}

/** A compiled query and the sources of its parameters. */
interface Prepared<P, R> {
  readonly compiled: CompiledQuery<R>;
  readonly sources: readonly { readonly name: keyof P | undefined; readonly constant: unknown }[];
}

function preparedFrom<P, R>(compiled: CompiledQuery<R>): Prepared<P, R> {
  const sources = compiled.parameters.map((parameter) =>
    parameter instanceof Placeholder
      ? { name: parameter.name as keyof P, constant: undefined }
      : { name: undefined, constant: parameter },
  );
  return { compiled, sources };
}

/**
 * Returns the given columns of a row, for `values()` and `set()` of a prepared query, which need explicit column names
 * because a placeholder row cannot be enumerated.
 */
export function pickColumns<T extends object, const K extends keyof T>(
  row: T,
  columns: readonly K[],
): Pick<T, K> {
  return Object.fromEntries(columns.map((column) => [column, row[column]])) as Pick<T, K>;
}

/**
 * Prepares one query for each combination of changed columns. Every property of `changes` is treated as a changed
 * column, even if its value is undefined.
 */
export function preparePerColumns<C extends string, Q>(
  prepare: (columns: readonly C[]) => Q,
): (changes: Readonly<Partial<Record<C, unknown>>>) => Q {
  const prepared = new Map<string, Q>();
  return (changes) => {
    const columns = Object.keys(changes).sort() as C[];
    const name = columns.join();
    const query = prepared.get(name) ?? prepare(columns);
    prepared.set(name, query);
    return query;
  };
}

function placeholders<P extends object>(): P {
  const get = (_: object, name: string | symbol): Placeholder => new Placeholder(String(name));
  return new Proxy({}, { get }) as P;
}
