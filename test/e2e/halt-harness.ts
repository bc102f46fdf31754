import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { DescService } from '@bufbuild/protobuf';
import { createAgentWorker, readAgentWorkerConfig } from '@writ/agent-worker';
import { createInProcessBus, TIMELINE_CONSUMER } from '@writ/bus';
import { createWritClient, type WritClient } from '@writ/client';
import type { Run } from '@writ/contracts/writ/run/v1/run_pb';
import { Priority } from '@writ/contracts/writ/supervision/v1/supervision_pb';
import { createExecutionMeter, readExecutionMeterConfig } from '@writ/execution-meter';
import {
  API_KEYS_FILE,
  devApiKey,
  mintAgentCredentials,
  mintSlotGrant,
  openApiKeys,
  openSigner,
  type ServiceName,
  serviceTokens,
  TRUST_FILE,
  writeTrustFile,
} from '@writ/identity';
import { newId, systemClock } from '@writ/kernel';
import { loadExample, readPlatformConfig } from '@writ/platform';
import { type CallOptions, createRpcClient, type Person, type RpcClient } from '@writ/rpc';
import type { Service, ServiceParts } from '@writ/service';
import { createModelSimulator, type ModelSimulator, type Script } from '@writ/simulator';
import { createSpawnBudget, readSpawnBudgetConfig } from '@writ/spawn-budget';
import { createSupervisor, readSupervisorConfig } from '@writ/supervisor';
import { createTelemetry } from '@writ/telemetry';
import { type FaultProxy, startFaultProxy } from '@writ/testing/faults';
import { createToolGateway, readToolGatewayConfig } from '@writ/tool-gateway';

/** Scripts whose first answer takes one minute; the second request is answered at once. */
const HELD = ['held-a', 'held-b', 'held-c', 'held-d', 'held-e'] as const;
const MODEL_SCRIPTS = ['auto-1000', 'escalate-1200', ...HELD] as const;

/** The script that the model of a run follows. */
export type ModelScript = (typeof MODEL_SCRIPTS)[number];

/**
 * All five services, with one fault-injecting proxy for the calls from the supervisor to the meter and one for its
 * calls to the gateway.
 */
export class HaltHarness {
  readonly simulator: ModelSimulator;
  readonly meter: FaultProxy;
  readonly gateway: FaultProxy;
  readonly #dataDir: string;
  readonly #addresses = new Map<ServiceName, string>();
  readonly #services: Service[] = [];
  readonly #closes: (() => void | Promise<void>)[] = [];
  #edge = '';

  private constructor(dataDir: string, simulator: ModelSimulator, proxies: readonly FaultProxy[]) {
    this.#dataDir = dataDir;
    this.simulator = simulator;
    const [meter, gateway] = proxies;
    if (meter === undefined || gateway === undefined) throw new Error('Two proxies are needed.');
    this.meter = meter;
    this.gateway = gateway;
  }

  static async start(): Promise<HaltHarness> {
    const dataDir = mkdtempSync(join(tmpdir(), 'writ-halt-'));
    const example = loadExample('refund-desk');
    const simulator = await createModelSimulator({
      scripts: [...example.scripts, ...HELD.map((name) => heldScript(name, example.scripts))],
      defaultScript: 'auto-1000',
    });
    const known: { harness?: HaltHarness } = {};
    const proxy = (service: ServiceName) =>
      startFaultProxy(() => known.harness?.address(service) ?? '');
    const proxies = [await proxy('execution-meter'), await proxy('tool-gateway')];
    const harness = new HaltHarness(dataDir, simulator, proxies);
    known.harness = harness;
    await harness.#boot(example);
    return harness;
  }

  address(service: ServiceName): string {
    return this.#addresses.get(service) ?? '';
  }

  get edgeUrl(): string {
    return `http://${this.#edge}`;
  }

  /** A client of the public services, for a person or with the development key. */
  async client(person?: Person): Promise<WritClient> {
    const file = join(this.#dataDir, API_KEYS_FILE);
    const apiKey = person
      ? await openApiKeys({ file }).create(person)
      : await devApiKey(this.#dataDir);
    return createWritClient({ baseUrl: this.edgeUrl, apiKey });
  }

  /** Returns credentials and clients of a second worker, which acts for the root of a run with a later epoch. */
  async worker(run: Run): Promise<{
    readonly options: CallOptions;
    /** Call options for the meter. */
    readonly meterOptions: CallOptions;
    readonly client: <S extends DescService>(service: S, at: ServiceName) => Promise<RpcClient<S>>;
  }> {
    const keyDir = join(this.#dataDir, 'keys');
    const signer = (service: ServiceName) => openSigner({ service, keyDir, clock: systemClock });
    const { tenant, runId, sessionId } = run;
    const agent = { name: run.agent?.name ?? '', instance: run.agent?.instance ?? '' };
    const scope = { tenant, runId, priority: Priority.NORMAL };
    const credentials = await mintAgentCredentials(await signer('supervisor'), {
      ...scope,
      sessionId,
      agent,
      depth: 0,
      models: MODEL_SCRIPTS.map((script) => `sim-${script}`),
      tools: [],
    });
    const epoch = 99n;
    const grant = await mintSlotGrant(await signer('spawn-budget'), {
      ...scope,
      agentInstance: agent.instance,
      epoch,
    });
    const slot = { slotGrant: grant.token, epoch };
    return {
      options: { ...slot, agentToken: credentials.supervisorToken ?? '' },
      meterOptions: { ...slot, agentToken: credentials.executionMeterToken ?? '' },
      client: async (service, at) => {
        const client = createRpcClient(service, {
          address: this.address(at),
          telemetry: createTelemetry({ service: 'test', logLevel: 'silent' }),
          serviceToken: serviceTokens(await signer('agent-worker'), {
            audience: at,
            replica: 'test',
          }),
        });
        this.#closes.push(() => client.close());
        return client;
      },
    };
  }

  /** Starts a run whose model follows a script. */
  async run(client: WritClient, script: ModelScript, deadlineMs?: number): Promise<Run> {
    const { run } = await client.runs.startRun({
      requestId: newId('req'),
      agent: 'refund-worker',
      goal: 'Refund it.',
      model: `sim-${script}`,
      ...(deadlineMs && { runBudget: { deadline: { seconds: 0n, nanos: deadlineMs * 1e6 } } }),
    });
    if (run === undefined) throw new Error('StartRun answered without a run.');
    return run;
  }

  /** Resolves when the model has received a request of a run that follows this script. */
  async untilAsked(name: ModelScript): Promise<void> {
    await this.simulator.until(({ script }) => script === name);
  }

  async close(): Promise<void> {
    this.meter.fail('none');
    this.gateway.fail('none');
    for (const close of this.#closes) await close();
    for (const service of this.#services.toReversed()) await service.stop();
    await Promise.all([this.meter.close(), this.gateway.close()]);
    await this.simulator.close();
    rmSync(this.#dataDir, { recursive: true, force: true });
  }

  async #boot(example: ReturnType<typeof loadExample>): Promise<void> {
    const models = join(this.#dataDir, 'models.yaml');
    writeFileSync(models, modelsYaml(this.simulator.url));
    const { env } = readPlatformConfig(
      { WRIT_MODELS_FILE: models, WRIT_LOG_LEVEL: 'silent' },
      {
        example,
        dataDir: this.#dataDir,
        freePorts: true,
        model: {
          description: '',
          simulated: true,
          env: { WRIT_SIMULATOR_URL: this.simulator.url, WRIT_SIMULATOR_KEY: 'simulated' },
          close: async () => undefined,
        },
      },
    );
    await devApiKey(this.#dataDir);
    const bus = createInProcessBus({
      requiredConsumers: [TIMELINE_CONSUMER],
      onError: () => undefined,
    });
    const parts = (service: ServiceName): ServiceParts => ({
      telemetry: createTelemetry({ service, logLevel: 'silent' }),
      bus,
      addressOf: (called) => this.#proxyFor(service, called),
    });
    const fast = { orderRetryMs: 10, orderRetryMaxMs: 50, haltWaitMs: 5_000, sweepMs: 50 };
    const supervisor = await createSupervisor(
      { ...readSupervisorConfig(env), ...fast },
      parts('supervisor'),
    );
    this.#edge = supervisor.edgeAddress;
    const slots = await createSpawnBudget(readSpawnBudgetConfig(env), parts('spawn-budget'));
    const meter = await createExecutionMeter(
      readExecutionMeterConfig(env),
      parts('execution-meter'),
    );
    const gateway = await createToolGateway(readToolGatewayConfig(env), parts('tool-gateway'));
    const worker = await createAgentWorker(
      { ...readAgentWorkerConfig(env), parkMs: 60_000 },
      parts('agent-worker'),
    );
    for (const service of [slots, meter, gateway, supervisor, worker]) {
      this.#services.push(service);
      this.#addresses.set(service.name as ServiceName, service.address);
    }
    await writeTrustFile(
      join(this.#dataDir, TRUST_FILE),
      Object.fromEntries(this.#addresses) as Record<ServiceName, string>,
    );
    for (const service of this.#services) await service.start();
    this.#closes.push(() => bus.close());
  }

  #proxyFor(caller: ServiceName, called: ServiceName): string {
    if (caller === 'supervisor' && called === 'execution-meter') return this.meter.address;
    if (caller === 'supervisor' && called === 'tool-gateway') return this.gateway.address;
    return this.address(called);
  }
}

function heldScript(name: string, scripts: readonly Script[]): Script {
  const original = scripts.find((script) => script.name === 'auto-1000');
  const [first, ...rest] = original?.entries ?? [];
  if (first === undefined) throw new Error('The refund desk has no script auto-1000.');
  const held = { ...first, times: 1, reply: { ...first.reply, delay_ms: 60_000 } };
  return { name, entries: [held, first, ...rest] };
}

function modelsYaml(url: string): string {
  const models = MODEL_SCRIPTS.map(
    (script) => `  sim-${script}: { template: sim, model: "sim:${script}" }`,
  );
  return [
    'templates:',
    '  sim:',
    `    base_url: ${url}`,
    '    api_key_env: WRIT_SIMULATOR_KEY',
    '    priced_as: gpt-4.1-mini',
    '    max_output_tokens: 4096',
    '    timeout: 60s',
    '    max_retries: 2',
    'models:',
    '  refund-desk: { template: sim, model: "sim:auto-1000" }',
    ...models,
  ].join('\n');
}
