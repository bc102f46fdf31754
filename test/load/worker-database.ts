import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import type { TestPlatform } from '@writ/testing/platform';
import { until } from '../e2e/scripted/until.ts';

/** Tables in which a worker writes under a lease. */
const TABLES = ['agents', 'journal', 'payloads', 'signals', 'timers', 'inbox', 'history'];

/** The database that the two workers share. */
export class WorkerDatabase {
  readonly #database: DatabaseSync;

  constructor({ dataDir }: TestPlatform) {
    this.#database = new DatabaseSync(sharedStoreFile(dataDir), { timeout: 300 });
  }

  /** The agent of a run; `owner` is the id of the worker that holds its lease. */
  agent(runId: string): { owner: string; epoch: number; ended: boolean } {
    const row = this.#database.prepare('SELECT * FROM agents WHERE run_id = ?').get(runId);
    return {
      owner: String(row?.lease_owner ?? '').split('/')[0] ?? '',
      epoch: Number(row?.epoch ?? 0),
      ended: typeof row?.ended_at === 'number' || typeof row?.ended_at === 'string',
    };
  }

  /** Resolves when the agent of a run meets a condition. */
  async until(
    runId: string,
    condition: (agent: ReturnType<WorkerDatabase['agent']>) => boolean,
  ): Promise<undefined> {
    const check = () => condition(this.agent(runId)) || undefined;
    await until(`the agent of ${runId}`, check, 2);
  }

  /** Returns whether no transaction holds the write lock. */
  isUnlocked(): boolean {
    try {
      this.#database.exec('BEGIN IMMEDIATE');
    } catch {
      return false;
    }
    this.#database.exec('ROLLBACK');
    return true;
  }

  /** All rows of a run, as text. */
  rows(runId: string): string {
    const rows = (table: string) =>
      this.#database.prepare(`SELECT * FROM ${table} WHERE run_id = ?`).all(runId);
    // No consumer is connected, so no row is deleted from the outbox.
    const events = this.#database.prepare('SELECT * FROM outbox').all();
    const runEvents = events.filter((event) => String(event.subject).includes(runId));
    return JSON.stringify([...TABLES.map(rows), runEvents], (_, value: unknown) =>
      typeof value === 'bigint' ? String(value) : value,
    );
  }

  close(): void {
    this.#database.close();
  }
}

/** The path of the shared database. */
export function sharedStoreFile(dataDir: string): string {
  return join(dataDir, 'two-workers.db');
}
