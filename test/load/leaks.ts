import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';

/** Rows that must not remain after every run has ended: label, service and query. */
export const LEAK_QUERIES = [
  ['slots', 'spawn-budget', "SELECT * FROM members WHERE state != 'released'"],
  ['pools', 'spawn-budget', 'SELECT * FROM pools WHERE closed_at IS NULL'],
  [
    'reservations',
    'execution-meter',
    'SELECT * FROM balances WHERE reserved_tokens != 0 OR reserved_cost != 0 OR reserved_turns != 0',
  ],
  ['tabs', 'execution-meter', 'SELECT * FROM tabs WHERE closed_at IS NULL'],
  ['orders', 'supervisor', "SELECT * FROM orders WHERE state = 'open'"],
  [
    'agents',
    'agent-worker',
    'SELECT tenant, run_id, instance, state, waiting_for, wake_at, lease_owner FROM agents WHERE ended_at IS NULL',
  ],
] as const;

/** Reads a service's database in a data folder. */
export function rowsOf(dataDir: string, service: string, query: string) {
  const database = new DatabaseSync(join(dataDir, `${service}.db`), { readOnly: true });
  try {
    return database.prepare(query).all();
  } finally {
    database.close();
  }
}
