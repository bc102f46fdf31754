import { join } from 'node:path';
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

/** A platform that runs somewhere: what a worker beside it needs to know. */
export interface Stage {
  readonly dataDir: string;
  readonly addresses: Readonly<Record<ServiceName, string>>;
}

/** Clients of everything that a worker calls, with the identity of the real one. */
export class WorkerClients {
  readonly #harness: Stage;
  readonly #signer: Signer;
  readonly #clients = new Map<string, ClosableRpcClient<DescService>>();

  private constructor(harness: Stage, signer: Signer) {
    this.#harness = harness;
    this.#signer = signer;
  }

  static async open(harness: Stage): Promise<WorkerClients> {
    return new WorkerClients(harness, await signerOf(harness, 'agent-worker'));
  }

  close(): void {
    for (const client of this.#clients.values()) client.close();
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
    const client = clientAs('agent-worker', this.#signer, service, this.#harness, audience);
    this.#clients.set(service.typeName, client as unknown as ClosableRpcClient<DescService>);
    return client;
  }
}

/** What a supervisor may ask of its peers: this test holds its key, too. */
export async function supervisorClient<S extends DescService>(
  harness: Stage,
  service: S,
  audience: ServiceName,
): Promise<ClosableRpcClient<S>> {
  const signer = await signerOf(harness, 'supervisor');
  return clientAs('supervisor', signer, service, harness, audience);
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

function signerOf({ dataDir }: Stage, service: ServiceName): Promise<Signer> {
  return openSigner({ service, keyDir: join(dataDir, 'keys'), clock: systemClock });
}
