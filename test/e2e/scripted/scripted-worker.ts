import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { type Delivered, ScriptedAgent, type Tokens } from './scripted-agent.ts';
import { until } from './until.ts';
import { type Stage, WorkerClients } from './worker-clients.ts';

/**
 * A worker that does what a test says, with the identity and the tokens of the real one: it leases every
 * agent in the moment in which it is delivered, so that the real worker runs none of them.
 */
export class ScriptedWorker {
  readonly #inbox: DatabaseSync;
  readonly #clients: WorkerClients;

  private constructor(inbox: DatabaseSync, clients: WorkerClients) {
    this.#inbox = inbox;
    this.#clients = clients;
  }

  /** Begins beside a platform that is up, or was killed and is up again. */
  static async start(harness: Stage): Promise<ScriptedWorker> {
    const inbox = new DatabaseSync(join(harness.dataDir, 'agent-worker.db'), { timeout: 5_000 });
    inbox.exec(`
      CREATE TRIGGER IF NOT EXISTS leased_at_once AFTER INSERT ON agents BEGIN
        UPDATE agents SET lease_owner = 'scripted', lease_expires_at = '2999-01-01T00:00:00.000Z'
        WHERE tenant = NEW.tenant AND run_id = NEW.run_id AND instance = NEW.instance;
      END`);
    return new ScriptedWorker(inbox, await WorkerClients.open(harness));
  }

  close(): void {
    this.#clients.close();
    this.#inbox.close();
  }

  /** The agents of a run that were delivered so far, in the order in which they came. */
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

  /** Whether an agent of a run was told anything since it was delivered. */
  isSignalled(runId: string): boolean {
    return this.#inbox.prepare('SELECT 1 FROM signals WHERE run_id = ?').get(runId) !== undefined;
  }

  /** Takes up an agent, the root when none is named, once it is delivered: it has a slot grant then. */
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
