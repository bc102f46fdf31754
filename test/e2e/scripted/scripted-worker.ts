import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { type Delivered, ScriptedAgent, type Tokens } from './scripted-agent.ts';
import { until } from './until.ts';
import { type RunningPlatform, WorkerClients } from './worker-clients.ts';

/**
 * A worker that a test controls, with the identity and the tokens of the real one. It leases every agent at
 * its delivery, under a later epoch than the real worker, so that the real worker does not run any of them.
 */
export class ScriptedWorker {
  readonly #inbox: DatabaseSync;
  readonly #clients: WorkerClients;

  private constructor(inbox: DatabaseSync, clients: WorkerClients) {
    this.#inbox = inbox;
    this.#clients = clients;
  }

  /** Connects to a running platform, also after a restart. */
  static async start(platform: RunningPlatform): Promise<ScriptedWorker> {
    const inbox = new DatabaseSync(join(platform.dataDir, 'agent-worker.db'), { timeout: 5_000 });
    inbox.exec(`
      CREATE TRIGGER IF NOT EXISTS leased_at_once AFTER INSERT ON agents BEGIN
        UPDATE agents SET epoch = 2, lease_owner = 'scripted', lease_expires_at = '2999-01-01T00:00:00.000Z'
        WHERE tenant = NEW.tenant AND run_id = NEW.run_id AND instance = NEW.instance;
      END`);
    return new ScriptedWorker(inbox, await WorkerClients.open(platform));
  }

  close(): void {
    this.#clients.close();
    this.#inbox.close();
  }

  /** The delivered agents of a run, in order of delivery. */
  delivered(runId: string): Delivered[] {
    const rows = this.#inbox
      .prepare('SELECT * FROM agents WHERE run_id = ? ORDER BY created_at, rowid')
      .all(runId);
    return rows.map((row) => ({
      runId,
      instance: String(row.instance),
      name: String(row.name),
      state: String(row.state),
      credentials: JSON.parse(String(row.credentials)) as Tokens,
      supervision: JSON.parse(String(row.supervision)) as Record<string, unknown>,
    }));
  }

  /** Returns whether an agent of a run has received a signal. */
  isSignalled(runId: string): boolean {
    return this.#inbox.prepare('SELECT 1 FROM signals WHERE run_id = ?').get(runId) !== undefined;
  }

  /** Waits for the delivery of an agent (default the root) and renews its slot. */
  async take(runId: string, instance?: string): Promise<ScriptedAgent> {
    const delivered = await until(`the delivery of ${instance ?? runId}`, () =>
      this.delivered(runId).find((agent) => instance === undefined || agent.instance === instance),
    );
    const agent = new ScriptedAgent(this.#clients, delivered, (run, child) =>
      this.take(run, child),
    );
    await agent.renew();
    return agent;
  }
}
