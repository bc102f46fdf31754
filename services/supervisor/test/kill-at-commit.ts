/**
 * Loaded before a supervisor's process: it dies like by kill -9 where an order would be taken beyond the
 * step that WRIT_TEST_KILL_AFTER names, with everything done but that commit; or where a statement would run
 * that begins with WRIT_TEST_KILL_BEFORE.
 */
import { StatementSync } from 'node:sqlite';
import pg from 'pg';

const step = process.env.WRIT_TEST_KILL_AFTER ?? '';
const statement = process.env.WRIT_TEST_KILL_BEFORE ?? '';
const SAVE_ORDER = /^update "orders" set (.*) where "order_id"/;

for (const method of ['run', 'all', 'get'] as const) {
  const original = StatementSync.prototype[method];
  const replacement = function (this: StatementSync, ...values: never[]): unknown {
    const isStep = SAVE_ORDER.test(this.sourceSQL) && values.some((value) => value === step);
    if (isStep || (statement !== '' && this.sourceSQL.startsWith(statement))) {
      process.kill(process.pid, 'SIGKILL');
    }
    return Reflect.apply(original, this, values);
  };
  Object.defineProperty(StatementSync.prototype, method, { value: replacement });
}

interface Asked {
  readonly text?: string;
  readonly values?: readonly unknown[];
}

// The same of a supervisor on PostgreSQL.
const ask = pg.Client.prototype.query;
const replaced = function (this: pg.Client, ...args: unknown[]): unknown {
  const { text = '', values = [] } = args[0] as Asked;
  const isStep = SAVE_ORDER.test(text) && values.some((value) => value === step);
  if (isStep || (statement !== '' && text.startsWith(statement))) {
    process.kill(process.pid, 'SIGKILL');
  }
  return Reflect.apply(ask, this, args);
};
Object.defineProperty(pg.Client.prototype, 'query', { value: replaced });
