import crypto from 'node:crypto';
import { syncBuiltinESMExports } from 'node:module';
import { DatabaseSync, StatementSync } from 'node:sqlite';

/** The work of a process so far, by kind (CO-1). */
export interface Work {
  /** COMMIT statements, background work and transactions that only read included. */
  commits: number;
  /** SQL statements other than transaction control and PRAGMA. */
  statements: number;
  /** Signatures made. */
  signs: number;
  /** Signatures verified. */
  verifies: number;
  /** Statements by verb and table, to name what has become more. */
  readonly byTable: Record<string, number>;
}

const CONTROL = /^\s*(begin|commit|rollback|savepoint|release|pragma)\b/i;
const TABLE = /\b(?:from|into|update)\s+"?(\w+)"?/i;

/** Counts from now on; for a process that does nothing else, since it replaces functions of node. */
export function countWork(): Work {
  const work: Work = { commits: 0, statements: 0, signs: 0, verifies: 0, byTable: {} };
  const count = (sql: string): void => {
    if (/^\s*commit\b/i.test(sql)) work.commits += 1;
    if (CONTROL.test(sql)) return;
    work.statements += 1;
    const verb = sql.trim().split(/\s/)[0]?.toLowerCase();
    const name = `${verb} ${TABLE.exec(sql)?.[1]}`;
    work.byTable[name] = (work.byTable[name] ?? 0) + 1;
  };
  for (const method of ['run', 'all', 'get', 'iterate'] as const) {
    const original = StatementSync.prototype[method] as (...values: unknown[]) => unknown;
    const counted = function (this: StatementSync, ...values: unknown[]): unknown {
      count(this.sourceSQL);
      return original.apply(this, values);
    };
    Object.defineProperty(StatementSync.prototype, method, { value: counted });
  }
  const { exec } = DatabaseSync.prototype;
  DatabaseSync.prototype.exec = function (sql: string): void {
    count(sql);
    exec.call(this, sql);
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
  return work;
}
