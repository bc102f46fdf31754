import { join } from 'node:path';
import { HOOK_SUBJECTS, TIMELINE_CONSUMER } from '@writ/bus';
import { createTrust, createVerifier, openSigner } from '@writ/identity';
import { systemClock } from '@writ/kernel';
import type { RpcServer } from '@writ/rpc';
import {
  knownAddresses,
  observeCommits,
  observeOutbox,
  outboxPublisher,
  type Service,
  type ServiceParts,
  type Sweep,
  Sweeper,
  tracedHandlers,
} from '@writ/service';
import { createOutboxRelay, type OutboxRelay } from '@writ/store';
import { ClockKeeper } from './app/agent/clock-keeper.ts';
import { expireApprovals } from './app/approval/expire-approvals.ts';
import { AuditChainer } from './app/audit/audit-chainer.ts';
import { FollowedAgents } from './app/definitions/agents-file.ts';
import { openPolicy } from './app/definitions/policy-file.ts';
import { OrderEngine } from './app/order/order-engine.ts';
import { endOverdue } from './app/run/end-overdue.ts';
import { purgeRuns } from './app/run/purge-runs.ts';
import { recordHooks } from './app/run/record-hooks.ts';
import type { SupervisorConfig } from './config.ts';
import type { SupervisorContext } from './context.ts';
import { createSupervisorEvents } from './events.ts';
import { createPeers } from './peers/peers.ts';
import { openDoors } from './rpc/servers.ts';
import { observeApprovals } from './store/approval/observe-approvals.ts';
import { openSupervisorStore } from './store/supervisor-store.ts';

/** The door for clients: runs, reviews, approvals and their record. */
export interface SupervisorService extends Service {
  readonly name: 'supervisor';
  /** `host:port` for people and clients. */
  readonly edgeAddress: string;
}

/** How long the last events may take to be delivered; they stay in the outbox otherwise. */
const FLUSH_MS = 2_000;

/**
 * Creates a supervisor: its ports are bound, and nothing is served before `start()`.
 * @throws ConfigError, PolicyError, UnavailableError PORT_IN_USE naming the setting, and what
 *   opening the store and the keys throws; what was opened is closed again
 */
export async function createSupervisor(
  config: SupervisorConfig,
  parts: ServiceParts,
): Promise<SupervisorService> {
  const opened = new AsyncDisposableStack();
  try {
    return await open(config, parts, opened);
  } catch (error) {
    await opened.disposeAsync();
    throw error;
  }
}

async function open(
  config: SupervisorConfig,
  parts: ServiceParts,
  opened: AsyncDisposableStack,
): Promise<SupervisorService> {
  const { context, relay, followFiles } = await createContext(config, parts, opened);
  const { clock, store, telemetry } = context;
  const engine = new OrderEngine(context);
  const chainer = new AuditChainer(context);
  const clocks = new ClockKeeper(store);
  const sweeper = new Sweeper(
    {
      endOverdue: () => endOverdue(context),
      expireApprovals: () => expireApprovals(context),
      purgeRuns: () => purgeRuns(context),
      followFiles,
      keepClocks: () => clocks.stayOn(),
    },
    config.sweepMs,
    telemetry.log,
  );
  const { internal, edge } = await openDoors(context, parts);
  opened.defer(() => closeServers(config, internal, edge));
  let stopping: Promise<void> | undefined;

  const stop = async (): Promise<void> => {
    await closeServers(config, internal, edge);
    // A step that waits for a peer is taken again after the next start.
    await Promise.race([
      Promise.all([engine.stop(), sweeper.stop(), chainer.stop()]),
      timeout(config.drainMs),
    ]);
    // What is not delivered stays in the outbox for the next start.
    await Promise.race([Promise.allSettled([relay.flush()]), timeout(FLUSH_MS)]);
    await relay.stop();
    await opened.disposeAsync();
  };

  return {
    name: 'supervisor',
    address: internal.address,
    edgeAddress: edge.address,
    get commits() {
      return store.commits;
    },
    async start() {
      await clocks.start();
      const subscription = await parts.bus.subscribe({
        subject: HOOK_SUBJECTS,
        durable: TIMELINE_CONSUMER,
        ...tracedHandlers(telemetry, TIMELINE_CONSUMER, recordHooks(store, clock, telemetry.log)),
      });
      opened.defer(() => subscription.unsubscribe());
      relay.start();
      engine.start();
      sweeper.start();
      chainer.start();
      internal.setServing(true);
      edge.setServing(true);
    },
    stop() {
      stopping ??= stop();
      return stopping;
    },
  };
}

interface Opened {
  readonly context: SupervisorContext;
  readonly relay: OutboxRelay;
  /** Looks whether rules or agents changed. */
  readonly followFiles: Sweep;
}

async function createContext(
  config: SupervisorConfig,
  { telemetry, bus, clock = systemClock, addressOf, tls, loopback }: ServiceParts,
  opened: AsyncDisposableStack,
): Promise<Opened> {
  const agents = await FollowedAgents.open(config.agents, telemetry.log);
  const rules = await openPolicy(config.policy, telemetry.log);
  const signer = await openSigner({
    service: 'supervisor',
    keyDir: join(config.dataDir, 'keys'),
    clock,
    rotateEveryMs: config.keyRotationMs,
  });
  const trust = createTrust({
    addresses: () => knownAddresses(addressOf),
    telemetry,
    self: signer,
    clock,
    tls,
    loopback,
  });
  opened.defer(async () => trust.close());
  let relay: OutboxRelay | undefined;
  const store = await openSupervisorStore(
    config.store,
    () => relay?.wake(),
    observeCommits(telemetry),
  );
  opened.defer(() => store.close());
  observeOutbox(telemetry, store, clock);
  observeApprovals(telemetry, store);
  relay = createOutboxRelay({
    store,
    clock,
    ...outboxPublisher(bus, telemetry),
    // What it tells is in the timeline already, and there is little of it.
    flushIntervalMs: 0,
  });
  const peers = createPeers({ config, telemetry, addressOf, signer, clock, tls, loopback });
  opened.defer(async () => {
    for (const peer of Object.values(peers)) peer.close();
  });
  const context: SupervisorContext = {
    config,
    store,
    bus,
    clock,
    telemetry,
    signer,
    verifier: createVerifier({ trust, clock }),
    peers,
    events: createSupervisorEvents(telemetry),
    get agents() {
      return agents.current;
    },
    get policy() {
      return rules.current;
    },
  };
  const followFiles = async (): Promise<void> => {
    await agents.look();
    await rules.look(peers.toolGateway);
  };
  return { context, relay, followFiles };
}

async function closeServers(
  { drainMs }: SupervisorConfig,
  ...servers: readonly RpcServer[]
): Promise<void> {
  await Promise.all(servers.map((server) => server.close(drainMs)));
}

function timeout(ms: number): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>();
  setTimeout(resolve, ms).unref();
  return promise;
}
