import { keyRoute } from '@writ/identity';
import { type AgentKind, InternalError } from '@writ/kernel';
import { defineService, type ServiceHost, type ServiceParts } from '@writ/service';
import { createView } from './agents/chat/context-strategies.ts';
import { historyFinder } from './agents/history-provider.ts';
import { agentCode } from './agents/index.ts';
import { loadAgentModules } from './agents/load-modules.ts';
import { middlewareRegistry, withMiddleware } from './agents/middleware/index.ts';
import { withGuardrails } from './agents/with-guardrails.ts';
import type { AgentWorkerConfig } from './config.ts';
import type { Delivery } from './domain/agent/delivery.ts';
import type { AgentManifest } from './domain/agent/manifest.ts';
import { createWorkerEvents, observeAgents } from './events.ts';
import { createPeers } from './peers/peers.ts';
import { createProgressPublisher } from './peers/progress-publisher.ts';
import { workerRoute } from './rpc/index.ts';
import type { AgentFactory } from './runtime/agent.ts';
import { readFirst } from './runtime/journal/first-reads.ts';
import { ClaimLoop } from './runtime/leases/claim-loop.ts';
import type { LeaseSession } from './runtime/leases/lease-session.ts';
import { runAgent } from './runtime/run-agent.ts';
import { SlotRenewer } from './runtime/slots/slot-renewer.ts';
import { openWorkerStore } from './store/worker-store.ts';

/** The parts of the process, and replacements for the worker's own parts. */
export interface AgentWorkerParts extends ServiceParts {
  /** Agent kinds that extend or replace the built-in kinds (AG-1). */
  readonly agents?: Readonly<Partial<Record<AgentKind, AgentFactory>>>;
  /** Opens the store; default: as configured. */
  readonly openStore?: typeof openWorkerStore;
}

/**
 * The service that runs agents. Agents only propose actions; the service has no credentials for models or tools and no
 * key for writs.
 */
export type AgentWorker = Awaited<ReturnType<typeof createAgentWorker>>;

/** Creates a worker. */
export const createAgentWorker = defineService({
  name: 'agent-worker',
  trusts: ['supervisor'],
  async open(host: ServiceHost<AgentWorkerConfig, AgentWorkerParts>) {
    const {
      config,
      parts,
      telemetry,
      bus,
      clock,
      peerClocks,
      signer,
      relay,
      isClockSkewed,
      sharedNow,
    } = host;
    const { workerId, tenants } = config;
    const { addressOf, tls, loopback, openStore = openWorkerStore } = parts;
    const { log } = telemetry;
    const store = await host.openStore((observer) => openStore(config.store, observer));
    observeAgents(telemetry, store);
    const peers = createPeers({
      clock,
      peerClocks,
      telemetry,
      signer,
      addressOf,
      workerId,
      tenants,
      tls,
      loopback,
    });
    host.defer(() => {
      for (const peer of Object.values(peers)) peer.close();
    });
    const events = createWorkerEvents(telemetry);
    const modules = await loadAgentModules(config.agentModules, config.agentsInCode);
    const code = agentCode(modules, parts.agents);
    const historyOf = historyFinder(modules);
    const middleware = middlewareRegistry(modules.middleware);
    const factoryOf = (kind: AgentKind, name: string, version: string) => {
      const factory = code.factoryOf(kind, name, version);
      if (factory !== undefined) return withGuardrails(withMiddleware(factory, middleware));
      return code.versionOf(kind, name) === undefined ? noFactory(kind, name) : undefined;
    };
    const onRunnable = () => loop.nudge();
    const settings = config;
    const slots = new SlotRenewer({
      peer: peers.spawnBudget,
      store,
      clock,
      log,
      settings,
      onRunnable,
    });
    const checkModules = (manifest: AgentManifest) => {
      createView(manifest, modules.strategies);
      historyOf(manifest);
    };
    const retryAt = (delayMs: number) => new Date(sharedNow().getTime() + delayMs);
    const runParts = {
      store,
      peers,
      slots,
      events,
      telemetry,
      publisher: createProgressPublisher(bus, log),
      factoryOf,
      checkModules,
      historyOf,
      settings: { ...settings, retryAt },
      onEvents: () => relay.wake(),
      onRunnable,
    };
    const run = (session: LeaseSession) => runAgent(runParts, session);
    const loop: ClaimLoop = new ClaimLoop({
      store,
      clock,
      log,
      settings,
      isClockSkewed,
      sharedNow,
      run,
    });
    const codeVersionOf = code.versionOf;
    const checkSettings = (manifest: AgentManifest) => {
      const { kind, name } = manifest;
      factoryOf(kind, name, codeVersionOf(kind, name) ?? '')?.(manifest, '');
      checkModules(manifest);
    };
    const flushEventsSoon = () => relay.flushSoon();
    const handlers = {
      store,
      clock,
      ownTime: (timeMs: number) => peerClocks.toOwn('supervisor', timeMs),
      events,
      flushEventsSoon,
      tenants,
      codeVersionOf,
      checkSettings,
      readFirst: (delivery: Delivery) => readFirst({ store, peers }, delivery),
      agents: loop,
    };
    const server = await host.listen([workerRoute(handlers), keyRoute(signer)]);
    // The loop stops first: agents that are ending still need their slots.
    return { server, background: [slots, loop], exposes: { store } };
  },
});

/** Throws the error for an agent whose module was removed before a restart of the worker. */
function noFactory(kind: string, name: string): never {
  throw new InternalError(
    'AGENT_FACTORY_MISSING',
    `No module of this worker defines agent "${name}" of kind ${kind}.`,
    { kind, agent: name },
  );
}
