import { join } from 'node:path';
import {
  assertRows,
  createTrust,
  createVerifier,
  internalGate,
  keyRoute,
  openSigner,
  type Signer,
} from '@writ/identity';
import { type Clock, InternalError, systemClock } from '@writ/kernel';
import { createRpcServer, type Route, type RpcServer } from '@writ/rpc';
import {
  observeCommits,
  observeOutbox,
  outboxPublisher,
  type Service,
  type ServiceParts,
} from '@writ/service';
import { createOutboxRelay } from '@writ/store';
import { loadAgentModules } from './agents/custom/load-modules.ts';
import { factoryFinder } from './agents/index.ts';
import { BUILT_IN_MIDDLEWARE, withMiddleware } from './agents/middleware/index.ts';
import type { AgentWorkerConfig } from './config.ts';
import type { AgentKind } from './domain/agent/manifest.ts';
import { createWorkerEvents } from './events.ts';
import { createPeers } from './peers/peers.ts';
import { createWatchers } from './peers/watchers.ts';
import { workerRoute } from './rpc/index.ts';
import type { AgentFactory } from './runtime/agent.ts';
import { LeaseLoop } from './runtime/lease-loop.ts';
import { runAgent } from './runtime/run-agent.ts';
import { SlotRenewer } from './runtime/slots/slot-renewer.ts';
import { observeAgents } from './store/observe-agents.ts';
import { openWorkerStore, type WorkerStore } from './store/worker-store.ts';

/** What a worker shares with its process, and what can be put in place of its own. */
export interface AgentWorkerParts extends ServiceParts {
  /** Loops beside, or instead of, the built-in ones (AG-1). */
  readonly agents?: Readonly<Partial<Record<AgentKind, AgentFactory>>>;
  /** Opens its state; default as the settings say. */
  readonly openStore?: typeof openWorkerStore;
}

/** The runner of agents: a durable loop that proposes, and holds no key to anything. */
export interface AgentWorker extends Service {
  readonly name: 'agent-worker';
  /** Its state; tests count commits with it. */
  readonly store: WorkerStore;
}

/** How long the last events may take to be delivered; they stay in the outbox otherwise. */
const FLUSH_MS = 2_000;

/**
 * Creates a worker: its port is bound, and nothing is run before `start()`.
 * @throws UnavailableError PORT_IN_USE naming the setting, and what opening the store and the keys
 *   throws; what was opened is closed again
 */
export async function createAgentWorker(
  config: AgentWorkerConfig,
  parts: AgentWorkerParts,
): Promise<AgentWorker> {
  const opened = new AsyncDisposableStack();
  try {
    return await open(config, parts, opened);
  } catch (error) {
    await opened.disposeAsync();
    throw error;
  }
}

async function open(
  config: AgentWorkerConfig,
  parts: AgentWorkerParts,
  opened: AsyncDisposableStack,
): Promise<AgentWorker> {
  const {
    telemetry,
    bus,
    clock = systemClock,
    addressOf,
    tls,
    loopback,
    openStore = openWorkerStore,
  } = parts;
  const { workerId, tenants } = config;
  const keyDir = join(config.dataDir, 'keys');
  const signer = await openSigner({
    service: 'agent-worker',
    keyDir,
    clock,
    rotateEveryMs: config.keyRotationMs,
  });
  const store = await openStore(config.store, observeCommits(telemetry));
  opened.defer(() => store.close());
  observeOutbox(telemetry, store, clock);
  observeAgents(telemetry, store);
  const peers = createPeers({
    telemetry,
    signer,
    addressOf,
    workerId,
    tenants,
    tls,
    loopback,
  });
  opened.defer(async () => {
    for (const peer of Object.values(peers)) peer.close();
  });
  const relay = createOutboxRelay({
    store,
    clock,
    ...outboxPublisher(bus, telemetry),
  });
  const events = createWorkerEvents(telemetry);
  const onEvents = () => relay.wake();
  const written = await loadAgentModules(config.agentModules);
  const findFactory = factoryFinder(written, parts.agents);
  const slots = new SlotRenewer({
    peer: peers.spawnBudget,
    store,
    clock,
    log: telemetry.log,
    settings: config,
    onRunnable: () => loop.nudge(),
  });
  const runParts = {
    store,
    peers,
    slots,
    events,
    telemetry,
    watchers: createWatchers(bus, telemetry.log),
    factoryOf: (kind: AgentKind, name: string) =>
      withMiddleware(findFactory(kind, name) ?? noFactory(kind, name), BUILT_IN_MIDDLEWARE),
    settings: config,
    onEvents,
    onRunnable: () => loop.nudge(),
  };
  const loop: LeaseLoop = new LeaseLoop({
    store,
    clock,
    log: telemetry.log,
    settings: config,
    run: (session) => runAgent(runParts, session),
  });
  const canRun = (kind: AgentKind, name: string) => findFactory(kind, name) !== undefined;
  const hurryEvents = () => relay.flushSoon();
  const handlers = { store, clock, events, hurryEvents, tenants, canRun, agents: loop };
  const routes = [workerRoute(handlers), keyRoute(signer)];
  const server = await listen(config, { ...parts, clock, signer, routes, opened });
  let stopping: Promise<void> | undefined;

  const stop = async (): Promise<void> => {
    await server.close(config.drainMs);
    await loop.stop();
    await slots.stop();
    // What is not delivered stays in the outbox for the next start.
    await Promise.race([Promise.allSettled([relay.flush()]), timeout(FLUSH_MS)]);
    await relay.stop();
    await opened.disposeAsync();
  };

  return {
    name: 'agent-worker',
    address: server.address,
    store,
    get commits() {
      return store.commits;
    },
    async start() {
      relay.start();
      slots.start();
      await loop.start();
      server.setServing(true);
    },
    stop() {
      stopping ??= stop();
      return stopping;
    },
  };
}

/** The worker was started with other modules than when it took the agent in. */
function noFactory(kind: string, name: string): never {
  throw new InternalError(
    'AGENT_FACTORY_MISSING',
    `Nothing here runs the agent ${name} of the kind ${kind}.`,
    { kind, agent: name },
  );
}

async function listen(
  config: AgentWorkerConfig,
  parts: Pick<AgentWorkerParts, 'telemetry' | 'addressOf' | 'tls' | 'cleartext' | 'loopback'> & {
    readonly clock: Clock;
    readonly signer: Signer;
    readonly routes: readonly Route[];
    readonly opened: AsyncDisposableStack;
  },
): Promise<RpcServer> {
  const { telemetry, clock, addressOf, signer, routes, opened, tls, cleartext, loopback } = parts;
  const trust = createTrust({
    addresses: () => ({ supervisor: addressOf('supervisor') }),
    telemetry,
    self: signer,
    clock,
    tls,
    loopback,
  });
  opened.defer(async () => trust.close());
  assertRows(routes);
  const gate = internalGate({
    service: 'agent-worker',
    verifier: createVerifier({ trust, clock }),
    enforceSlotGrants: false,
    trustDomain: tls?.trustDomain,
  });
  const { host, port } = config;
  const portSetting = 'WRIT_AGENT_WORKER_PORT';
  const server = await createRpcServer({
    host,
    port,
    portSetting,
    tls: tls?.server,
    loopback,
    cleartext,
    routes,
    gate,
    telemetry,
  });
  opened.defer(() => server.close(0));
  return server;
}

function timeout(ms: number): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>();
  setTimeout(resolve, ms).unref();
  return promise;
}
