import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fromBinary } from '@bufbuild/protobuf';
import { type Bus, createInProcessBus, HOOK_SUBJECTS } from '@writ/bus';
import {
  type HookEvent,
  HookEventSchema,
  HookEventType,
} from '@writ/contracts/writ/hook/v1/hook_event_pb';
import type { Decision } from '@writ/contracts/writ/review/v1/decision_pb';
import {
  type AgentDescription,
  AgentState,
  AgentWorkerService,
} from '@writ/contracts/writ/worker/v1/agent_worker_service_pb';
import {
  createVerifier,
  internalGate,
  openSigner,
  type ServiceName,
  trustSigners,
} from '@writ/identity';
import { type Clock, codeWaitFrom, type JsonObject, systemClock } from '@writ/kernel';
import type { RpcClient } from '@writ/rpc';
import { createTelemetry, InMemorySpans } from '@writ/telemetry';
import { addressOf, type KeyPeer, startKeyPeer } from '@writ/testing';
import { testStore } from '@writ/testing/postgres';
import { expect, onTestFinished, vi } from 'vitest';
import {
  AGENT_WORKER_DEFAULTS,
  type AgentWorker,
  type AgentWorkerConfig,
  type AgentWorkerParts,
  createAgentWorker,
} from '../src/index.ts';
import {
  AGENT,
  type DeliveryOptions,
  deliveryRequest,
  type ManifestFields,
  RUN,
  TENANT,
} from './delivery.ts';
import { FakeGateway } from './fake-gateway.ts';
import { FakeMeter, type FakeModel } from './fake-meter.ts';
import { FakeSlots } from './fake-slots.ts';
import { FakeSupervisor } from './fake-supervisor.ts';
import { FaultSwitches } from './fault-switches.ts';

const LOG_LEVEL = process.env.WRIT_TEST_LOG === undefined ? 'silent' : 'info';

/** Options of a test world. */
export interface WorldOptions {
  readonly model?: FakeModel;
  readonly clock?: Clock;
  /** Whether the worker's state is stored in a file, so that it survives restarts. */
  readonly inFile?: boolean;
}

/** Fakes of the worker's peers, over real gRPC and with real tokens, and the worker. */
export class World {
  readonly faults = new FaultSwitches();
  readonly supervisor = new FakeSupervisor(this.faults);
  readonly meter: FakeMeter;
  readonly gateway = new FakeGateway(this.faults);
  readonly slots = new FakeSlots(this.faults);
  readonly events: HookEvent[] = [];
  readonly spans = new InMemorySpans();
  readonly bus: Bus = createInProcessBus({ onError: () => undefined });
  readonly #clock: Clock;
  readonly #inFile: boolean;
  readonly #folder: string;
  readonly #peers: KeyPeer[] = [];
  readonly #workers: AgentWorker[] = [];
  #client: RpcClient<typeof AgentWorkerService> | undefined;

  private constructor(options: WorldOptions, folder: string) {
    this.meter = new FakeMeter(this.faults, options.model ?? (() => '{}'));
    this.#clock = options.clock ?? systemClock;
    this.#inFile = options.inFile ?? false;
    this.#folder = folder;
  }

  /** Starts the fakes for the duration of the test; {@link startWorker} starts the worker. */
  static async start(options: WorldOptions = {}): Promise<World> {
    const world = new World(options, await mkdtemp(join(tmpdir(), 'writ-worker-')));
    onTestFinished(() => world.#close());
    await world.#startPeers();
    await world.bus.subscribe({
      subject: HOOK_SUBJECTS,
      durable: 'test',
      handler: async ({ payload }) => {
        world.events.push(fromBinary(HookEventSchema, payload));
      },
    });
    return world;
  }

  /** The data folder of the worker. */
  get dataDir(): string {
    return this.#folder;
  }

  /** The most recently started worker. */
  get lastWorker(): AgentWorker {
    const worker = this.#workers.at(-1);
    if (worker === undefined) throw new Error('No worker was started.');
    return worker;
  }

  /** Addresses of the fakes. */
  get addressOf(): (service: ServiceName) => string {
    return addressOf(...this.#peers);
  }

  /** Starts a worker on the world's store; does not stop a worker that was started earlier. */
  async startWorker(
    changes: Partial<AgentWorkerConfig> = {},
    parts: Partial<AgentWorkerParts> = {},
  ): Promise<AgentWorker> {
    const worker = await createAgentWorker(this.config(changes), {
      telemetry: createTelemetry({
        service: 'agent-worker',
        logLevel: LOG_LEVEL,
        spanProcessors: [this.spans],
      }),
      bus: this.bus,
      clock: this.#clock,
      addressOf: this.addressOf,
      ...parts,
    });
    this.#workers.push(worker);
    await worker.start();
    this.callWorkerAt(worker.address);
    return worker;
  }

  /** Settings with short delays. */
  config(changes: Partial<AgentWorkerConfig> = {}): AgentWorkerConfig {
    return {
      ...AGENT_WORKER_DEFAULTS,
      port: 0,
      dataDir: this.#folder,
      store: testStore({
        dialect: 'sqlite',
        file: this.#inFile ? join(this.#folder, 'agent-worker.db') : ':memory:',
      }),
      pollMs: 50,
      parkMs: 10,
      slotRenewMs: 20,
      restartMs: 1,
      retryInitialMs: 1,
      retryMaxMs: 10,
      drainMs: 20,
      ...changes,
    };
  }

  /** Sets the address of the worker that the world calls. */
  callWorkerAt(address: string): void {
    this.#client = this.#peer('supervisor').client(AgentWorkerService, {
      audience: 'agent-worker',
      address,
    });
  }

  /** Client with which the supervisor calls the worker. */
  get worker(): RpcClient<typeof AgentWorkerService> {
    if (this.#client === undefined) throw new Error('No worker was started.');
    return this.#client;
  }

  /**
   * Delivers an agent to the worker, by default the agent of the refund desk. Returns whether the worker accepted the
   * delivery.
   */
  async deliver(options: DeliveryOptions = {}): Promise<boolean> {
    const { runId = RUN, tokenTtlMs, agent } = options;
    const { accepted } = await this.worker.deliver({
      ...deliveryRequest(options),
      credentials: await this.credentials(runId, tokenTtlMs, agent),
    });
    return accepted;
  }

  /** Makes the supervisor create children with these manifests. */
  withChildren(manifests: Readonly<Record<string, Partial<ManifestFields>>>): void {
    this.supervisor.deliverChild = (child) =>
      this.deliver({
        ...child,
        manifest: { name: child.agent.name, ...manifests[child.agent.name] },
      });
    this.supervisor.endAgent = (runId, agentInstance) =>
      this.worker.cancel({
        requestId: `end-${agentInstance}`,
        tenant: TENANT,
        runId,
        agentInstance,
        stopReason: 'cancelled',
      });
  }

  /** Decides an action as a human, and signals the worker. */
  async approve(callId: string, answer: 'reject' | { readonly args: JsonObject }, runId = RUN) {
    const decision = this.supervisor.decide(runId, callId, answer);
    return await this.wake(`wake-${callId}`, decision, runId);
  }

  /** Signals the current decision to the worker. */
  async wake(requestId: string, decision: Decision, runId = RUN) {
    return await this.worker.signal({
      requestId,
      tenant: TENANT,
      runId,
      agentInstance: AGENT.instance,
      name: `approval:${decision.callId}`,
      approval: { decision, credentials: await this.credentials(runId) },
    });
  }

  /** Issues an agent's tokens. */
  async credentials(runId: string, ttlMs?: number, agent: DeliveryOptions['agent'] = AGENT) {
    return await this.#peer('supervisor').agentCredentials({ tenant: TENANT, runId, agent }, ttlMs);
  }

  /** Returns the agent's status. */
  async describe(runId = RUN, name: string = AGENT.name): Promise<AgentDescription> {
    const { agents } = await this.worker.describeRun({ tenant: TENANT, runId });
    const agent = agents.find((candidate) => candidate.agent?.name === name);
    if (agent === undefined) throw new Error(`There is no agent of ${runId}.`);
    return agent;
  }

  /** Resolves when the agent has reached a state. */
  async until(
    state: keyof typeof AgentState,
    runId = RUN,
    name: string = AGENT.name,
  ): Promise<AgentDescription> {
    return await vi.waitFor(
      async () => {
        const agent = await this.describe(runId, name);
        if (agent.state === AgentState[state]) return agent;
        throw new Error(`The agent is ${agent.state} (${agent.stopReason}), not ${state}.`);
      },
      { interval: 5, timeout: 30_000 },
    );
  }

  /**
   * Waits until an agent waits for matching code; returns its wait signal and the error message in its trace.
   */
  async untilCodeWait(runId = RUN): Promise<{ wait: string; detail: string }> {
    const { waitingFor } = await this.until('PARKED', runId);
    const [wait = ''] = waitingFor;
    const mismatch = codeWaitFrom(wait)?.mismatch;
    const detail = await vi.waitFor(
      () => {
        const found = this.spans
          .spans()
          .find(
            ({ attributes }) =>
              attributes['writ.run_id'] === runId && attributes['error.type'] === mismatch,
          );
        return found?.status.message ?? expect.fail(`${wait} is in no trace.`);
      },
      { timeout: 30_000 },
    );
    return { wait, detail };
  }

  /**
   * Returns the published step events, such as `STEP_START 1` and `STEP_END 1 approve`, without duplicates: an
   * abandoned worker and its successor may both publish the events of their common store (HK-1).
   */
  steps(): string[] {
    const unique = new Map(this.events.map((event) => [event.eventId, event]));
    return [...unique.values()].map(({ type, step, status }) => {
      const name = type === HookEventType.STEP_START ? 'STEP_START' : 'STEP_END';
      return `${name} ${step} ${status}`.trim();
    });
  }

  async #close(): Promise<void> {
    this.faults.release();
    await Promise.all(this.#workers.map((worker) => worker.stop()));
    await Promise.all(this.#peers.map((peer) => peer.close()));
    await this.bus.close();
    await rm(this.#folder, { recursive: true, force: true });
  }

  async #startPeers(): Promise<void> {
    const keyDir = join(this.#folder, 'keys');
    const clock = this.#clock;
    const open = (service: ServiceName) => openSigner({ service, keyDir, clock });
    const spawnBudget = await open('spawn-budget');
    const trust = trustSigners(await open('agent-worker'), await open('supervisor'), spawnBudget);
    const verifier = createVerifier({ trust, clock });
    this.slots.equip(spawnBudget, verifier);
    const fakes = {
      supervisor: this.supervisor,
      'spawn-budget': this.slots,
      'execution-meter': this.meter,
      'tool-gateway': this.gateway,
    } as const;
    const services = ['supervisor', 'spawn-budget', 'execution-meter', 'tool-gateway'] as const;
    for (const service of services) {
      const gate = internalGate({ service, verifier, enforceSlotGrants: true });
      const routes = fakes[service].routes();
      this.#peers.push(await startKeyPeer(service, { keyDir, clock, routes, gate }));
    }
    this.supervisor.credentials = (runId) => this.credentials(runId);
  }

  #peer(service: ServiceName): KeyPeer {
    const peer = this.#peers.find((candidate) => candidate.service === service);
    if (peer === undefined) throw new Error(`There is no ${service}.`);
    return peer;
  }
}
