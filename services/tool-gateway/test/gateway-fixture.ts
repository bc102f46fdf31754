import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type BusMessage, createInProcessBus } from '@writ/bus';
import {
  type RefusedAttempt,
  SupervisionService,
} from '@writ/contracts/writ/supervision/v1/supervision_service_pb';
import { ToolGatewayService } from '@writ/contracts/writ/tool/v1/tool_gateway_service_pb';
import { createTrust, createVerifier, readReceipt, type Verifier } from '@writ/identity';
import { newId, systemClock } from '@writ/kernel';
import { type CallOptions, type ClosableRpcClient, partialRoute } from '@writ/rpc';
import { createTelemetry, InMemorySpans, type Telemetry } from '@writ/telemetry';
import { addressOf, type KeyPeer, startKeyPeer } from '@writ/testing';
import { testStore } from '@writ/testing/postgres';
import { expect } from 'vitest';
import {
  createToolGateway,
  TOOL_GATEWAY_DEFAULTS,
  type ToolGateway,
  type ToolGatewayConfig,
} from '../src/index.ts';
import { loadToolsFile } from '../src/sources/tools-file.ts';
import { type CallRequest, requestOf, type TestCall } from './test-call.ts';
import { TOOLS, type ToolsSettings, toolsYaml } from './tools-yaml.ts';
import { type World, worldOf } from './world.ts';

/** Options of {@link startFixture}. */
export interface FixtureOptions extends ToolsSettings {
  /** Path of a tools.yaml to use instead of the generated one. */
  readonly toolsFile?: string;
  readonly config?: Partial<ToolGatewayConfig>;
  /** Tenants with their own worker pool; the worker of the fixture belongs to the default pool. */
  readonly pooledTenants?: readonly string[];
  /** Returns the ids of the receipts that the supervisor acknowledges; default none. */
  readonly onReceipts?: (tokens: readonly string[]) => Promise<readonly string[]>;
  /** Returns the ids of the refusals that the supervisor acknowledges; default none. */
  readonly onRefusals?: (attempts: readonly RefusedAttempt[]) => readonly string[];
}

/** A gateway and its clients. */
export interface Replica {
  readonly gateway: ToolGateway;
  readonly asWorker: Gateway;
  readonly asSupervisor: Gateway;
}

type Gateway = ClosableRpcClient<typeof ToolGatewayService>;

/** A gateway under test with a supervisor, a worker, and tools whose executions a {@link World} records. */
export interface Fixture extends AsyncDisposable {
  readonly dataDir: string;
  readonly world: World;
  readonly supervisor: KeyPeer;
  readonly worker: KeyPeer;
  readonly spans: InMemorySpans;
  /** Published events. */
  readonly events: BusMessage[];
  readonly verifier: Verifier;
  /** The current gateway. */
  readonly gateway: ToolGateway;
  /** Clients of the current gateway. */
  readonly asWorker: Gateway;
  readonly asSupervisor: Gateway;
  /** Returns a request with a matching writ, except where `call` sets other values. */
  request(call?: TestCall): Promise<CallRequest>;
  /** Calls a tool as the worker; the epoch is 1 unless `options` sets another one. */
  call(call?: TestCall, options?: CallOptions): ReturnType<Gateway['callTool']>;
  /** Simulates a crash by closing the store of the gateway, then starts another gateway on the same store. */
  crash(): Promise<void>;
  /** Starts a second gateway on the same store. */
  startReplica(): Promise<Replica>;
  /** Verifies a receipt of this gateway and returns its claims. */
  receipt(token: string): ReturnType<typeof readReceipt>;
}

/**
 * Starts a gateway on a free port, with its store in a temporary folder; disposing of the fixture deletes the folder.
 */
export async function startFixture(options: FixtureOptions = {}): Promise<Fixture> {
  const dataDir = await mkdtemp(join(tmpdir(), 'writ-gateway-'));
  const worldName = newId('world');
  const { tools = TOOLS, onReceipts = async () => [], onRefusals = () => [] } = options;
  const { pooledTenants = [] } = options;
  const supervisor = await startKeyPeer('supervisor', {
    routes: [
      partialRoute(SupervisionService, {
        reportReceipts: async ({ receipts, refusals }) => ({
          acknowledgedReceiptIds: receipts.length === 0 ? [] : [...(await onReceipts(receipts))],
          acknowledgedRefusalIds: refusals.length === 0 ? [] : [...onRefusals(refusals)],
        }),
      }),
    ],
  });
  const worker = await startKeyPeer('agent-worker');
  const config: ToolGatewayConfig = {
    ...TOOL_GATEWAY_DEFAULTS,
    port: 0,
    dataDir,
    store: testStore({ dialect: 'sqlite', file: join(dataDir, 'tool-gateway.db') }),
    tools: options.toolsFile ?? {
      text: toolsYaml(options),
      file: join(import.meta.dirname, 'tools.yaml'),
    },
    variables: { WORLD: worldName, TOOLS: Object.keys(tools).join(',') },
    drainMs: 0,
    flushMs: 0,
    ...options.config,
  };
  const spans = new InMemorySpans();
  const telemetry = createTelemetry({
    service: 'tool-gateway',
    logLevel: 'silent',
    spanProcessors: [spans],
  });
  const digests = loadToolsFile(config.tools, config.variables).registry.tools;
  const digestOf = (tool: string) => digests.get(tool)?.digest ?? 'unknown';
  const peers = { supervisor, worker, pooledTenants };
  const fixture = new RunningFixture(config, telemetry, spans, peers, worldName, digestOf);
  await fixture.start();
  return fixture;
}

class RunningFixture implements Fixture {
  readonly dataDir: string;
  readonly world: World;
  readonly supervisor: KeyPeer;
  readonly worker: KeyPeer;
  readonly spans: InMemorySpans;
  readonly events: BusMessage[] = [];
  readonly #config: ToolGatewayConfig;
  readonly #telemetry: Telemetry;
  readonly #pooledTenants: readonly string[];
  readonly #digestOf: (tool: string) => string;
  readonly #old: ToolGateway[] = [];
  #running: Running | undefined;

  constructor(
    config: ToolGatewayConfig,
    telemetry: Telemetry,
    spans: InMemorySpans,
    {
      supervisor,
      worker,
      pooledTenants,
    }: Pick<Fixture, 'supervisor' | 'worker'> & Required<Pick<FixtureOptions, 'pooledTenants'>>,
    worldName: string,
    digestOf: (tool: string) => string,
  ) {
    this.dataDir = config.dataDir;
    this.world = worldOf(worldName);
    this.spans = spans;
    this.supervisor = supervisor;
    this.worker = worker;
    this.#config = config;
    this.#telemetry = telemetry;
    this.#pooledTenants = pooledTenants;
    this.#digestOf = digestOf;
  }

  get gateway(): ToolGateway {
    return this.#now.gateway;
  }

  get asWorker(): Gateway {
    return this.#now.asWorker;
  }

  get asSupervisor(): Gateway {
    return this.#now.asSupervisor;
  }

  get verifier(): Verifier {
    return this.#now.verifier;
  }

  async start(): Promise<void> {
    this.#running = await this.#open();
  }

  async startReplica(): Promise<Replica> {
    const replica = await this.#open();
    replica.close();
    this.#old.push(replica.gateway);
    return replica;
  }

  async #open(): Promise<Running> {
    const bus = createInProcessBus({ onError: () => undefined });
    await bus.subscribe({
      subject: 'writ.hooks.v1.>',
      durable: 'test',
      handler: async (message) => {
        this.events.push(message);
      },
    });
    const gateway = await createToolGateway(this.#config, {
      telemetry: this.#telemetry,
      bus,
      addressOf: addressOf(this.supervisor, this.worker),
      workerPools:
        this.#pooledTenants.length === 0
          ? []
          : [{ address: this.worker.address, tenants: this.#pooledTenants }],
    });
    await gateway.start();
    const { address } = gateway;
    const to = { audience: 'tool-gateway', address } as const;
    const trust = createTrust({
      addresses: { 'tool-gateway': address },
      telemetry: this.#telemetry,
    });
    return {
      gateway,
      asWorker: this.worker.client(ToolGatewayService, to),
      asSupervisor: this.supervisor.client(ToolGatewayService, to),
      verifier: createVerifier({ trust, clock: systemClock }),
      close: () => trust.close(),
    };
  }

  async request(call: TestCall = {}): Promise<CallRequest> {
    return await requestOf(call, this.supervisor.signer, this.#digestOf);
  }

  async call(call: TestCall = {}, options: CallOptions = {}): ReturnType<Gateway['callTool']> {
    return await this.asWorker.callTool(await this.request(call), { epoch: 1n, ...options });
  }

  async crash(): Promise<void> {
    const { gateway, close } = this.#now;
    this.#old.push(gateway);
    close();
    const { id } = gateway.store.replicas;
    await gateway.store.close();
    await this.start();
    // Waits until the calls of the crashed replica are recovered; another replica recovers them only after it has
    // declared the crashed replica dead.
    await expect.poll(() => this.#unrecoveredCallsOf(id)).toBe(0);
  }

  /** Number of calls that a dead process owned and that have not been recovered. */
  async #unrecoveredCallsOf(owner: string): Promise<number> {
    const unrecovered = this.gateway.store.db
      .selectFrom('calls')
      .select('call_id')
      .where('owner', '=', owner)
      .where('state', '=', 'intent');
    return (await unrecovered.execute()).length;
  }

  receipt(token: string): ReturnType<typeof readReceipt> {
    return readReceipt(this.verifier, token);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#now.close();
    await Promise.all([...this.#old, this.gateway].map((gateway) => gateway.stop()));
    await this.supervisor.close();
    await this.worker.close();
    await this.#telemetry.shutdown();
    await rm(this.dataDir, { recursive: true, force: true });
  }

  get #now(): Running {
    if (this.#running === undefined) throw new Error('The gateway has not started.');
    return this.#running;
  }
}

interface Running extends Replica {
  readonly verifier: Verifier;
  close(): void;
}
