import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fromBinary } from '@bufbuild/protobuf';
import { createInProcessBus, HOOK_SUBJECTS } from '@writ/bus';
import { type HookEvent, HookEventSchema } from '@writ/contracts/writ/hook/v1/hook_event_pb';
import { SpawnBudgetService as Contract } from '@writ/contracts/writ/spawn/v1/spawn_budget_service_pb';
import { createTrust, createVerifier, EVERY_SERVICE, type ServiceName } from '@writ/identity';
import { type Clock, ManualClock } from '@writ/kernel';
import type { ClosableRpcClient } from '@writ/rpc';
import type { StoreLocation } from '@writ/store';
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

/** Options of a {@link World}. */
export interface WorldOptions {
  readonly config?: Partial<SpawnBudgetConfig>;
  /** Default: a manual clock. */
  readonly clock?: Clock;
  /** Keeps the state in a file, which survives a restart of the service. */
  readonly durable?: boolean;
}

/** A running spawn-budget, with a supervisor, a worker and a meter that it trusts. */
export class World {
  readonly clock: Clock;
  /** Delivered events in order. */
  readonly events: HookEvent[] = [];
  /** The database of the service; a second store can open it if the state is durable. */
  readonly location: StoreLocation;
  readonly #boot: () => Promise<SpawnBudgetService>;
  readonly #peers: ReadonlyMap<ServiceName, KeyPeer>;
  readonly #dataDir: string;
  #service: SpawnBudgetService | undefined;
  readonly #replicas: SpawnBudgetService[] = [];
  #clients = new Map<ServiceName, SpawnClient>();
  #eventWaiters: (() => void)[] = [];

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
    this.location = store;
    this.#boot = async () =>
      await createSpawnBudget(
        { ...SPAWN_BUDGET_DEFAULTS, port: 0, dataDir, store, ...config },
        {
          telemetry: createTelemetry({ service: 'spawn-budget', logLevel: 'silent' }),
          bus: await this.#subscribedBus(),
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

  /** A trusted peer. */
  peer(name: ServiceName): KeyPeer {
    const peer = this.#peers.get(name);
    if (peer === undefined) throw new Error(`Peer ${name} does not exist.`);
    return peer;
  }

  /** A new client that calls as a peer. */
  clientOf(peer: KeyPeer, options?: PeerTokenOptions): SpawnClient {
    const address = this.#service?.address ?? '';
    return peer.client(Contract, { audience: 'spawn-budget', address }, options);
  }

  /** Verifies a slot grant like other services, with keys fetched over gRPC. */
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

  /** Advances the manual clock. */
  advance(ms: number): void {
    if (!(this.clock instanceof ManualClock)) throw new Error('The clock is not manual.');
    this.clock.advance(ms);
  }

  /** Resolves when the delivered events satisfy `fits`. */
  async until(fits: (events: readonly HookEvent[]) => boolean): Promise<void> {
    while (!fits(this.events)) {
      await new Promise<void>((resolve) => {
        this.#eventWaiters.push(resolve);
      });
    }
  }

  /** Restarts the service on the same state. */
  async restart(): Promise<void> {
    await this.#service?.stop();
    for (const client of this.#clients.values()) client.close();
    this.#clients = new Map();
    this.#service = await this.#boot();
    await this.#service.start();
  }

  /** Starts a second service on the same state; returns a client of that service that calls as the supervisor. */
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

  async #subscribedBus() {
    const bus = createInProcessBus({ onError: () => undefined });
    await bus.subscribe({
      subject: HOOK_SUBJECTS,
      durable: 'timeline',
      handler: async ({ payload }) => {
        this.events.push(fromBinary(HookEventSchema, payload));
        for (const wake of this.#eventWaiters.splice(0)) wake();
      },
    });
    return bus;
  }
}
