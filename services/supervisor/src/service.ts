import { join } from 'node:path';
import { AUDIT_CHECKPOINT_SUBJECTS, HOOK_SUBJECTS, TIMELINE_CONSUMER } from '@writ/bus';
import { API_KEYS_FILE, assertRows, createOidc, openApiKeys, publicGate } from '@writ/identity';
import { type Route, type RpcServer, TlsFiles } from '@writ/rpc';
import { createEdge } from '@writ/rpc/edge';
import { defineService, type ServiceHost, Sweeper, tracedHandlers } from '@writ/service';
import { ClockKeeper } from './app/agent/clock-keeper.ts';
import { expireApprovals } from './app/approval/expire-approvals.ts';
import { AuditChainer } from './app/audit/audit-chainer.ts';
import { ChainGuard } from './app/audit/chain-guard.ts';
import { CheckpointFile } from './app/audit/checkpoint-file.ts';
import { AgentsFile } from './app/definitions/agents-file.ts';
import { openPolicy } from './app/definitions/policy-file.ts';
import { recordRecoveryHalt } from './app/halt/request-halt.ts';
import { NotificationSender } from './app/notify/notification-sender.ts';
import { NotificationsFile } from './app/notify/notifications-file.ts';
import { notifier } from './app/notify/notify.ts';
import { OrderEngine } from './app/order/order-engine.ts';
import { endOverdue } from './app/run/end-overdue.ts';
import { RunPurger } from './app/run/purge-runs.ts';
import { Reconciler } from './app/run/reconcile.ts';
import { HeldEvents } from './app/timeline/held-events.ts';
import { recordBusEvents } from './app/timeline/record-bus-events.ts';
import type { SupervisorConfig } from './config.ts';
import { consoleFiles } from './console.ts';
import type { SupervisorContext } from './context.ts';
import { StartQueue } from './domain/admission/start-queue.ts';
import { createSupervisorEvents } from './events.ts';
import { createPeers } from './peers/peers.ts';
import { EVENT_STREAMS } from './rpc/event-streams.ts';
import { internalRoutes, publicRoutes } from './rpc/index.ts';
import { observeApprovals } from './store/approval/approvals.ts';
import { observeHalts } from './store/halt/halts.ts';
import { openSupervisorStore, type SupervisorStore } from './store/supervisor-store.ts';
import { createTenantRate } from './store/tenant-rate.ts';

/** The service with the public API: runs, reviews, approvals and the audit record. */
export type SupervisorService = Awaited<ReturnType<typeof createSupervisor>>;

/**
 * Creates a supervisor.
 * @throws ConfigError, PolicyError naming the invalid entry of the agents or policy file
 */
export const createSupervisor = defineService({
  name: 'supervisor',
  async open(host: ServiceHost<SupervisorConfig>) {
    const { config, bus, telemetry, isClockConfirmed, isClockSkewed } = host;
    const { context, reloadFiles, notifications } = await openContext(host);
    const { store } = context;
    const clocks = new ClockKeeper(store);
    const reconciler = new Reconciler(context);
    const purger = new RunPurger(context);
    const { releaseHeld, ...hooks } = recordBusEvents(context);
    const sweeps = {
      releaseHeld,
      endOverdue: () => endOverdue(context),
      expireApprovals: () => expireApprovals(context),
      purgeRuns: () => purger.sweep(),
      reconcile: () => reconciler.sweep(),
      reloadFiles,
      keepClocks: () => clocks.takeOver(),
    };
    const sweeper = new Sweeper(sweeps, config.sweepMs, telemetry.log, isClockSkewed);
    const internal = internalRoutes(context);
    const routes = publicRoutes(context);
    assertRows([...internal, ...routes]);
    const server = await host.listen(internal, { enforceSlotGrants: true });
    const edge = await openEdge(host, context, routes);
    return {
      server,
      edge,
      prepare: async () => {
        await clocks.start();
        const subscription = await bus.subscribe({
          subject: HOOK_SUBJECTS,
          durable: TIMELINE_CONSUMER,
          ...tracedHandlers(telemetry, TIMELINE_CONSUMER, hooks),
        });
        host.defer(() => subscription.unsubscribe());
      },
      background: [
        new OrderEngine(context),
        sweeper,
        new AuditChainer({ ...context, isClockConfirmed, isClockSkewed }),
        new NotificationSender({ ...context, current: () => notifications.current }),
      ],
      // A step that still waits for a peer after this time is repeated after the next start.
      limits: { backgroundMs: config.drainMs },
      exposes: { edgeAddress: edge.address },
    };
  },
});

async function openContext(host: ServiceHost<SupervisorConfig>): Promise<{
  readonly context: SupervisorContext;
  readonly reloadFiles: () => Promise<void>;
  readonly notifications: NotificationsFile;
}> {
  const { config, parts, telemetry, bus, clock, peerClocks, signer, verifier, relay } = host;
  const { addressOf, workerPools, tls, loopback } = parts;
  const agents = await AgentsFile.open(config.agents, config.agentsInCode ?? [], telemetry.log);
  const rules = await openPolicy(config.policy, telemetry.log);
  const { notifications: file, variables } = config;
  const notifications = await NotificationsFile.open(file, variables, telemetry.log);
  const notify = notifier(() => notifications.current);
  const store = await host.openStore(
    (observer) => openSupervisorStore(config.store, () => relay.wake(), observer),
    // The outbox needs no flush interval: the supervisor emits few events, and they are already on the timeline.
    {
      flushIntervalMs: 0,
      onRecovery: (trx, order) => recordRecoveryHalt(trx, order, clock.now()),
    },
  );
  observeApprovals(telemetry, store);
  observeHalts(telemetry, store);
  const peers = createPeers({
    config,
    telemetry,
    addressOf,
    workerPools,
    signer,
    clock,
    peerClocks,
    tls,
    loopback,
  });
  host.defer(() => {
    for (const peer of Object.values(peers)) peer.close();
  });
  const context: SupervisorContext = {
    config,
    store,
    bus,
    clock,
    telemetry,
    signer,
    verifier,
    apiKeys: openApiKeys({
      file: join(config.dataDir, API_KEYS_FILE),
      unsaved: config.unsavedApiKeys,
      clock,
      onUnreadable: (error) => {
        telemetry.log.error({ err: error }, 'API keys unreadable; rejecting all API keys');
      },
    }),
    peers,
    events: createSupervisorEvents(telemetry, notify),
    notify,
    ...(await openChainGuard(host, store)),
    heldEvents: new HeldEvents(),
    starts: new StartQueue(config),
    get agents() {
      return agents.current;
    },
    get notifications() {
      return notifications.current;
    },
    get policy() {
      return rules.current;
    },
  };
  const reloadFiles = async (): Promise<void> => {
    await agents.look();
    await rules.look(peers.toolGateway);
    await notifications.look();
  };
  return { context, reloadFiles, notifications };
}

/** Opens the records of the audit chains that are kept outside the database (SV-8). */
async function openChainGuard(
  host: ServiceHost<SupervisorConfig>,
  store: SupervisorStore,
): Promise<Pick<SupervisorContext, 'chainGuard' | 'checkpointFile'>> {
  const { config, telemetry, verifier, bus } = host;
  const chainGuard = new ChainGuard({ store, verifier, log: telemetry.log });
  const { auditCheckpointFile: path } = config;
  const checkpointFile =
    path === undefined ? undefined : await CheckpointFile.open(path, chainGuard);
  host.defer(() => checkpointFile?.close());
  await chainGuard.open();
  const published = bus.subscribeLive({
    subject: AUDIT_CHECKPOINT_SUBJECTS,
    handler: chainGuard.onEvent,
  });
  host.defer(() => published.unsubscribe());
  return { chainGuard, checkpointFile };
}

/** Binds the listener for clients. */
async function openEdge(
  host: ServiceHost<SupervisorConfig>,
  { store, apiKeys }: SupervisorContext,
  routes: readonly Route[],
): Promise<RpcServer> {
  const { config, clock, telemetry } = host;
  const { log, metrics } = telemetry;
  const { edgeTls } = config;
  const files = edgeTls && TlsFiles.open({ ...edgeTls, log, metrics, use: 'edge' });
  host.defer(() => files?.close());
  const edge = await createEdge({
    ...config.edge,
    portSetting: 'WRIT_EDGE_PORT',
    tls: files && { files, clientCertificates: 'none' },
    routes,
    eventStreams: EVENT_STREAMS,
    allowedOrigins: config.allowedOrigins,
    gate: publicGate({
      apiKeys,
      oidc:
        config.oidc &&
        createOidc(config.oidc, {
          clock,
          onUnavailable: (error) => {
            log.error({ err: error }, 'keys of the OIDC issuer unavailable; rejecting its tokens');
          },
        }),
      rateLimit: createTenantRate(store, config.tenantRate, clock),
      clock,
    }),
    web: consoleFiles(config.console, config.oidc),
    telemetry,
  });
  host.defer(() => edge.close(0));
  return edge;
}
