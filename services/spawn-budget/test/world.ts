import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fromBinary } from '@bufbuild/protobuf';
import { createInProcessBus, HOOK_SUBJECTS } from '@writ/bus';
import { type HookEvent, HookEventSchema } from '@writ/contracts/writ/hook/v1/hook_event_pb';
import { SpawnBudgetService as Contract } from '@writ/contracts/writ/spawn/v1/spawn_budget_service_pb';
import { createTrust, createVerifier, EVERY_SERVICE, type ServiceName } from '@writ/identity';
import { type Clock, ManualClock, UnavailableError } from '@writ/kernel';
import type { ClosableRpcClient } from '@writ/rpc';
import { createTelemetry } from '@writ/telemetry';
import { addressOf, type KeyPeer, type PeerTokenOptions, startKeyPeer } from '@writ/testing';
import { testStore } from '@writ/testing/postgres';
import {
  createSpawnBudget,
  SPAWN_BUDGET_DEFAULTS,
  type SpawnBudgetConfig,
  type SpawnBudgetService,
} from '../src/index.ts';

/** A client of the service under test. */
export type SpawnClient = ClosableRpcClient<typeof Contract>;

/** What a world may be told. */
export interface WorldOptions {
  readonly config?: Partial<SpawnBudgetConfig>;
  /** Default: one that moves only when told to. */
  readonly clock?: Clock;
  /** Keeps its state in a file, so that it outlives the service. */
  readonly durable?: boolean;
}

/** The service as its process starts it, with a supervisor, a worker and a meter that it trusts. */
export class World {
  readonly clock: Clock;
  /** Whether the bus takes no events now. */
  deaf = false;
  /** Events that the bus took, in order. */
  readonly events: HookEvent[] = [];
  readonly #boot: () => Promise<SpawnBudgetService>;
  readonly #peers: ReadonlyMap<ServiceName, KeyPeer>;
  readonly #dataDir: string;
  #service: SpawnBudgetService | undefined;
  readonly #replicas: SpawnBudgetService[] = [];
  #clients = new Map<ServiceName, SpawnClient>();
  #eventsCame: (() => void)[] = [];

  static async start(options: WorldOptions = {}): Promise<World> {
    const clock = options.clock ?? new ManualClock();
    const dataDir = await mkdtemp(join(tmpdir(), 'writ-spawn-'));
    const names = ['supervisor', 'agent-worker', 'execution-meter'] as const;
    const peers = await Promise.all(names.map((name) => startKeyPeer(name, { clock })));
    const world = new World(options, clock, dataDir, peers);
    await world.restart();
    return world;
  }

  constructor(
    { config, durable = false }: WorldOptions,
    clock: Clock,
    dataDir: string,
    peers: readonly KeyPeer[],
  ) {
    this.clock = clock;
    this.#dataDir = dataDir;
    this.#peers = new Map(peers.map((peer) => [peer.service, peer]));
    const file = durable ? join(dataDir, 'spawn-budget.db') : ':memory:';
    const store = testStore({ dialect: 'sqlite', file });
    this.#boot = async () =>
      await createSpawnBudget(
        { ...SPAWN_BUDGET_DEFAULTS, port: 0, dataDir, store, ...config },
        {
          telemetry: createTelemetry({ service: 'spawn-budget', logLevel: 'silent' }),
          bus: await this.#listeningBus(),
          clock,
          addressOf: addressOf(...peers),
        },
      );
  }

  get supervisor(): SpawnClient {
    return this.#client('supervisor');
  }

  get worker(): SpawnClient {
    return this.#client('agent-worker');
  }

  /** One of those that the service trusts. */
  peer(name: ServiceName): KeyPeer {
    const peer = this.#peers.get(name);
    if (peer === undefined) throw new Error(`There is no ${name} in this world.`);
    return peer;
  }

  /** A client of one's own in the name of a peer. */
  clientOf(peer: KeyPeer, options?: PeerTokenOptions): SpawnClient {
    const address = this.#service?.address ?? '';
    return peer.client(Contract, { audience: 'spawn-budget', address }, options);
  }

  /** Reads a slot grant as any other service would, with keys fetched over the wire. */
  async readGrant(token: string | undefined) {
    const telemetry = createTelemetry({ service: 'test', logLevel: 'silent' });
    const addresses = { 'spawn-budget': this.#service?.address ?? '' };
    const trust = createTrust({ addresses, telemetry, clock: this.clock });
    try {
      const verifier = createVerifier({ trust, clock: this.clock });
      const expected = { issuer: 'spawn-budget', audience: EVERY_SERVICE } as const;
      return await verifier.verify('slot_grant', token ?? '', expected);
    } finally {
      trust.close();
    }
  }

  /** Moves the world's clock. */
  advance(ms: number): void {
    if (!(this.clock instanceof ManualClock)) throw new Error('This world has a real clock.');
    this.clock.advance(ms);
  }

  /** Resolves when `fits` holds of the events that came, now or later. */
  async until(fits: (events: readonly HookEvent[]) => boolean): Promise<void> {
    while (!fits(this.events)) {
      await new Promise<void>((resolve) => {
        this.#eventsCame.push(resolve);
      });
    }
  }

  /** Stops the service, if it runs, and starts it on the same state. */
  async restart(): Promise<void> {
    await this.#service?.stop();
    for (const client of this.#clients.values()) client.close();
    this.#clients = new Map();
    this.#service = await this.#boot();
    await this.#service.start();
  }

  /**
   * Starts a second process on the same state, as a replica, or as the next one after a crash in
   * which the first did not get to stop; answers the supervisor's client of it.
   */
  async startReplica(): Promise<SpawnClient> {
    const replica = await this.#boot();
    this.#replicas.push(replica);
    await replica.start();
    return this.peer('supervisor').client(Contract, {
      audience: 'spawn-budget',
      address: replica.address,
    });
  }

  async stop(): Promise<void> {
    for (const peer of this.#peers.values()) await peer.close();
    for (const replica of this.#replicas) await replica.stop();
    await this.#service?.stop();
    await rm(this.#dataDir, { recursive: true, force: true });
  }

  #client(name: ServiceName): SpawnClient {
    const client = this.#clients.get(name) ?? this.clientOf(this.peer(name));
    this.#clients.set(name, client);
    return client;
  }

  async #listeningBus() {
    const bus = createInProcessBus({ onError: () => undefined });
    await bus.subscribe({
      subject: HOOK_SUBJECTS,
      durable: 'timeline',
      handler: async ({ payload }) => {
        if (this.deaf) throw new UnavailableError('UNAVAILABLE', 'The timeline is down.');
        this.events.push(fromBinary(HookEventSchema, payload));
        for (const tell of this.#eventsCame.splice(0)) tell();
      },
    });
    return bus;
  }
}
