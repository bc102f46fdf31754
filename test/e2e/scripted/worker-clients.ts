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

/** The data folder and the addresses of a running platform. */
export interface RunningPlatform {
  readonly dataDir: string;
  readonly addresses: Readonly<Record<ServiceName, string>>;
}

/** Clients of every service that a worker calls, with the identity of the real worker. */
export class WorkerClients {
  readonly #platform: RunningPlatform;
  readonly #signer: Signer;
  readonly #clients = new Map<string, ClosableRpcClient<DescService>>();

  private constructor(platform: RunningPlatform, signer: Signer) {
    this.#platform = platform;
    this.#signer = signer;
  }

  static async open(platform: RunningPlatform): Promise<WorkerClients> {
    return new WorkerClients(platform, await signerOf(platform, 'agent-worker'));
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
    const client = clientAs('agent-worker', this.#signer, service, this.#platform, audience);
    this.#clients.set(service.typeName, client as unknown as ClosableRpcClient<DescService>);
    return client;
  }
}

/** A client that authenticates as the supervisor, whose key the test has. */
export async function supervisorClient<S extends DescService>(
  platform: RunningPlatform,
  service: S,
  audience: ServiceName,
): Promise<ClosableRpcClient<S>> {
  const signer = await signerOf(platform, 'supervisor');
  return clientAs('supervisor', signer, service, platform, audience);
}

function clientAs<S extends DescService>(
  caller: ServiceName,
  signer: Signer,
  service: S,
  { addresses }: RunningPlatform,
  audience: ServiceName,
): ClosableRpcClient<S> {
  return createRpcClient(service, {
    address: addresses[audience],
    telemetry: createTelemetry({ service: caller, logLevel: 'silent' }),
    serviceToken: serviceTokens(signer, { audience, replica: 'scripted' }),
  });
}

function signerOf({ dataDir }: RunningPlatform, service: ServiceName): Promise<Signer> {
  return openSigner({ service, keyDir: join(dataDir, 'keys'), clock: systemClock });
}
