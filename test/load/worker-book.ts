import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import type { TestPlatform } from '@writ/testing/platform';
import { until } from '../e2e/scripted/until.ts';

/** Tables in which a worker writes under a lease. */
const TABLES = ['agents', 'journal', 'payloads', 'signals', 'timers', 'inbox', 'history'];

/** What stands in the store that the two share. */
export class WorkerBook {
  readonly #database: DatabaseSync;

  constructor({ dataDir }: TestPlatform) {
    this.#database = new DatabaseSync(storeIn(dataDir), { timeout: 300 });
  }

  agent(runId: string): { owner: string; epoch: number; ended: boolean } {
    const row = this.#database.prepare('SELECT * FROM agents WHERE run_id = ?').get(runId);
    return {
      owner: String(row?.lease_owner ?? ''),
      epoch: Number(row?.epoch ?? 0),
      ended: typeof row?.ended_at === 'number' || typeof row?.ended_at === 'string',
    };
  }

  /** Resolves when the agent of a run is as it should be. */
  async until(
    runId: string,
    is: (agent: ReturnType<WorkerBook['agent']>) => boolean,
  ): Promise<undefined> {
    const look = () => is(this.agent(runId)) || undefined;
    await until(`the agent of ${runId}`, look, 2);
  }

  /** Whether nobody is in the middle of a transaction. */
  isFree(): boolean {
    try {
      this.#database.exec('BEGIN IMMEDIATE');
    } catch {
      return false;
    }
    this.#database.exec('ROLLBACK');
    return true;
  }

  /** Everything that the workers have written about a run, as text. */
  rows(runId: string): string {
    const rows = (table: string) =>
      this.#database.prepare(`SELECT * FROM ${table} WHERE run_id = ?`).all(runId);
    // Events are only added while nobody takes them.
    const events = this.#database.prepare('SELECT * FROM outbox').all();
    const about = events.filter((event) => String(event.subject).includes(runId));
    return JSON.stringify([...TABLES.map(rows), about], (_, value: unknown) =>
      typeof value === 'bigint' ? String(value) : value,
    );
  }

  close(): void {
    this.#database.close();
  }
}

/** The file of the store that the workers share. */
export function storeIn(dataDir: string): string {
  return join(dataDir, 'two-workers.db');
}
