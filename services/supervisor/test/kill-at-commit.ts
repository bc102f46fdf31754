/**
 * Preloaded into a supervisor process. Kills the process with SIGKILL before the statement that stores the value of
 * WRIT_TEST_KILL_AFTER in an order, or before a statement that starts with WRIT_TEST_KILL_BEFORE.
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

interface QueryConfig {
  readonly text?: string;
  readonly values?: readonly unknown[];
}

// Kills a supervisor on PostgreSQL before the same statements.
const query = pg.Client.prototype.query;
const replaced = function (this: pg.Client, ...args: unknown[]): unknown {
  const { text = '', values = [] } = args[0] as QueryConfig;
  const isStep = SAVE_ORDER.test(text) && values.some((value) => value === step);
  if (isStep || (statement !== '' && text.startsWith(statement))) {
    process.kill(process.pid, 'SIGKILL');
  }
  return Reflect.apply(query, this, args);
};
Object.defineProperty(pg.Client.prototype, 'query', { value: replaced });
