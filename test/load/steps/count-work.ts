import crypto from 'node:crypto';
import { createRequire, syncBuiltinESMExports } from 'node:module';
import { DatabaseSync, StatementSync } from 'node:sqlite';

/** The work that a process has done, by kind (CO-1). */
export interface Work {
  /** Transactions with at least one counted statement. */
  commits: number;
  /** SQL statements other than transaction control, PRAGMA, and those of background loops. */
  statements: number;
  /** Queries built for one execution instead of prepared, other than those of background loops. */
  built: number;
  /** Signatures made. */
  signs: number;
  /** Signatures verified. */
  verifies: number;
  /** Statements by verb and table, and built queries, to show which kind has increased. */
  readonly byTable: Record<string, number>;
}

const CONTROL = /^\s*(begin|commit|rollback|savepoint|release|pragma)\b/i;
const TABLE = /\b(?:from|into|update)\s+"?(\w+)"?/i;

/**
 * Statements of background loops that a run triggers, but whose number depends on time: updates of the outbox, the
 * audit chain and leases, and acknowledgements.
 */
const ROUND =
  /^update "(outbox|audit|leases)"|"audit_(chains|checkpoints)"|^select .* from "audit"|"acknowledged_at" = /;

/** Number of characters of a built query that identify it. */
const MAX_SHOWN = 120;

/** The counted work of a process. */
export interface WorkCounter {
  readonly work: Work;
  /**
   * While true, every executed statement is recorded as that of a background loop; recorded statements are not counted
   * afterwards.
   */
  isIdle: boolean;
}

/** Starts counting; only for a process that does nothing else, because it replaces functions of Node. */
export function countWork(): WorkCounter {
  const work: Work = { commits: 0, statements: 0, built: 0, signs: 0, verifies: 0, byTable: {} };
  const counter = { work, isIdle: false };
  const polls = new Set<string>();
  const databases = new WeakMap<StatementSync, DatabaseSync>();
  /** Whether the open transaction of a database has a counted statement. */
  const open = new Map<DatabaseSync | undefined, boolean>();
  const count = (database: DatabaseSync | undefined, sql: string): void => {
    if (/^\s*begin\b/i.test(sql)) open.set(database, false);
    if (/^\s*commit\b/i.test(sql)) {
      if (open.get(database) === true) work.commits += 1;
      open.delete(database);
    }
    if (CONTROL.test(sql)) return;
    if (counter.isIdle) polls.add(sql);
    if (polls.has(sql) || ROUND.test(sql)) return;
    if (open.has(database)) open.set(database, true);
    work.statements += 1;
    const verb = sql.trim().split(/\s/)[0]?.toLowerCase();
    const name = `${verb} ${TABLE.exec(sql)?.[1]}`;
    work.byTable[name] = (work.byTable[name] ?? 0) + 1;
  };
  for (const method of ['run', 'all', 'get', 'iterate'] as const) {
    const original = StatementSync.prototype[method] as (...values: unknown[]) => unknown;
    const counted = function (this: StatementSync, ...values: unknown[]): unknown {
      count(databases.get(this), this.sourceSQL);
      return original.apply(this, values);
    };
    Object.defineProperty(StatementSync.prototype, method, { value: counted });
  }
  const { exec, prepare } = DatabaseSync.prototype;
  DatabaseSync.prototype.prepare = function (...values: Parameters<typeof prepare>): StatementSync {
    const statement = prepare.apply(this, values);
    databases.set(statement, this);
    return statement;
  };
  DatabaseSync.prototype.exec = function (sql: string): void {
    count(this, sql);
    exec.call(this, sql);
  };
  const compiler = queryCompiler();
  const { compileQuery } = compiler;
  compiler.compileQuery = function (...values) {
    const compiled = compileQuery.apply(this, values);
    const { sql } = compiled;
    if (counter.isIdle || polls.has(sql) || ROUND.test(sql)) return compiled;
    work.built += 1;
    const name = `built: ${sql.slice(0, MAX_SHOWN)}`;
    work.byTable[name] = (work.byTable[name] ?? 0) + 1;
    return compiled;
  };
  const { sign, verify } = crypto;
  Object.assign(crypto, {
    sign: (...values: Parameters<typeof sign>) => {
      work.signs += 1;
      return sign(...values);
    },
    verify: (...values: Parameters<typeof verify>) => {
      work.verifies += 1;
      return verify(...values);
    },
  });
  syncBuiltinESMExports();
  return counter;
}

/**
 * Returns the prototype of the class that compiles the queries of every store; Kysely is a dependency of libs/store,
 * not of this test.
 */
function queryCompiler(): { compileQuery(...values: unknown[]): { readonly sql: string } } {
  const fromStore = createRequire(import.meta.resolve('@writ/store'));
  return fromStore('kysely').DefaultQueryCompiler.prototype;
}
