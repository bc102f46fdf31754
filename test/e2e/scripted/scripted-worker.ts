import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import type { DescService } from '@bufbuild/protobuf';
import { ExecutionMeterService } from '@writ/contracts/writ/meter/v1/execution_meter_service_pb';
import { ModelService } from '@writ/contracts/writ/model/v1/model_service_pb';
import { ReviewService } from '@writ/contracts/writ/review/v1/review_service_pb';
import { SpawnBudgetService } from '@writ/contracts/writ/spawn/v1/spawn_budget_service_pb';
import { SupervisionService } from '@writ/contracts/writ/supervision/v1/supervision_service_pb';
import { ToolGatewayService } from '@writ/contracts/writ/tool/v1/tool_gateway_service_pb';
import { openSigner, type ServiceName, type Signer, serviceTokens } from '@writ/identity';
import { systemClock } from '@writ/kernel';
import { type ClosableRpcClient, createRpcClient } from '@writ/rpc';
import { createTelemetry } from '@writ/telemetry';
import { ScriptedAgent, type Tokens } from './scripted-agent.ts';
import { until } from './until.ts';

/** A platform that runs somewhere: what a worker beside it needs to know. */
export interface Stage {
  readonly dataDir: string;
  readonly addresses: Readonly<Record<ServiceName, string>>;
}

/** An agent as it was delivered. */
export interface Delivered {
  readonly runId: string;
  readonly instance: string;
  readonly name: string;
  readonly state: string;
  readonly credentials: Tokens;
  readonly supervision: Record<string, unknown>;
}

/**
 * A worker that does what a test says, with the identity and the tokens of the real one: it leases every
 * agent in the moment in which it is delivered, so that the real worker runs none of them.
 */
export class ScriptedWorker {
  readonly #inbox: DatabaseSync;
  readonly #stage: Stage;
  readonly #signer: Signer;
  readonly #clients = new Map<string, ClosableRpcClient<DescService>>();

  private constructor(stage: Stage, inbox: DatabaseSync, signer: Signer) {
    this.#stage = stage;
    this.#inbox = inbox;
    this.#signer = signer;
  }

  /** Begins beside a platform that is up, or was killed and is up again. */
  static async start(stage: Stage): Promise<ScriptedWorker> {
    const inbox = new DatabaseSync(join(stage.dataDir, 'agent-worker.db'), { timeout: 5_000 });
    inbox.exec(`
      CREATE TRIGGER IF NOT EXISTS leased_at_once AFTER INSERT ON agents BEGIN
        UPDATE agents SET lease_owner = 'scripted', lease_expires_at = '2999-01-01T00:00:00.000Z'
        WHERE tenant = NEW.tenant AND run_id = NEW.run_id AND instance = NEW.instance;
      END`);
    const signer = await openSigner({
      service: 'agent-worker',
      keyDir: join(stage.dataDir, 'keys'),
      clock: systemClock,
    });
    return new ScriptedWorker(stage, inbox, signer);
  }

  close(): void {
    for (const client of this.#clients.values()) client.close();
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
    const agent = new ScriptedAgent(this, delivered);
    await agent.renew();
    return agent;
  }

  get supervision() {
    return this.#client(SupervisionService, 'supervisor');
  }

  get reviews() {
    return this.#client(ReviewService, 'supervisor');
  }

  get slots() {
    return this.#client(SpawnBudgetService, 'spawn-budget');
  }

  get models() {
    return this.#client(ModelService, 'execution-meter');
  }

  get tabs() {
    return this.#client(ExecutionMeterService, 'execution-meter');
  }

  get tools() {
    return this.#client(ToolGatewayService, 'tool-gateway');
  }

  #client<S extends DescService>(service: S, audience: ServiceName): ClosableRpcClient<S> {
    const known = this.#clients.get(service.typeName);
    if (known !== undefined) return known as unknown as ClosableRpcClient<S>;
    const client = clientAs('agent-worker', this.#signer, service, this.#stage, audience);
    this.#clients.set(service.typeName, client as unknown as ClosableRpcClient<DescService>);
    return client;
  }
}

/** What a supervisor may ask of its peers: this test holds its key, too. */
export async function supervisorClient<S extends DescService>(
  stage: Stage,
  service: S,
  audience: ServiceName,
): Promise<ClosableRpcClient<S>> {
  const signer = await openSigner({
    service: 'supervisor',
    keyDir: join(stage.dataDir, 'keys'),
    clock: systemClock,
  });
  return clientAs('supervisor', signer, service, stage, audience);
}

function clientAs<S extends DescService>(
  caller: ServiceName,
  signer: Signer,
  service: S,
  { addresses }: Stage,
  audience: ServiceName,
): ClosableRpcClient<S> {
  return createRpcClient(service, {
    address: addresses[audience],
    telemetry: createTelemetry({ service: caller, logLevel: 'silent' }),
    serviceToken: serviceTokens(signer, { audience, replica: 'scripted' }),
  });
}
