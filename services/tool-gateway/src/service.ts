import { join } from 'node:path';
import {
  assertRows,
  createTrust,
  createVerifier,
  internalGate,
  openSigner,
  serviceTokens,
  TOOL_PROVIDER,
} from '@writ/identity';
import { systemClock, UnavailableError } from '@writ/kernel';
import { createRpcServer, type RpcServer } from '@writ/rpc';
import {
  knownAddresses,
  observeCommits,
  observeOutbox,
  outboxPublisher,
  type Service,
  type ServiceParts,
  Sweeper,
} from '@writ/service';
import { createOutboxRelay, createSlotShare, type OutboxRelay } from '@writ/store';
import { InFlightCalls } from './app/calls/in-flight-calls.ts';
import { recoverCalls } from './app/calls/recover-calls.ts';
import { watchFreezes } from './app/freezes/freeze-watch.ts';
import { ReceiptDelivery } from './app/receipts/receipt-delivery.ts';
import type { ToolGatewayConfig } from './config.ts';
import type { GatewayContext } from './context.ts';
import { createGatewayEvents } from './events.ts';
import { connectSupervisor } from './peers/supervisor.ts';
import { gatewayRoutes } from './rpc/index.ts';
import { LiveTools } from './sources/live-tools.ts';
import { MAX_TIMEOUT_MS } from './sources/tool-entry.ts';
import { type GatewayStore, openGatewayStore } from './store/gateway-store.ts';
import { createNotes } from './store/notes.ts';

/** A running tool gateway. */
export interface ToolGateway extends Service {
  readonly name: 'tool-gateway';
  /** Its state; tests count commits with it. */
  readonly store: GatewayStore;
}

/** What a call may take beside its tool. */
const CALL_OVERHEAD_MS = 60_000;
/** Between two looks for what replicas that ended have left. */
const RECOVER_MS = 1_000;

/**
 * Opens a tool gateway: its tools, state, keys and port, and settles what a former process left open.
 * What a failed start had opened is closed again.
 * @throws ConfigError naming the place in tools.yaml or the module; what openStore and createRpcServer throw
 */
export async function createToolGateway(
  config: ToolGatewayConfig,
  parts: ServiceParts,
): Promise<ToolGateway> {
  const opened = new AsyncDisposableStack();
  try {
    return await open(config, parts, opened);
  } catch (error) {
    await opened.disposeAsync();
    throw error;
  }
}

async function open(
  config: ToolGatewayConfig,
  { telemetry, bus, clock = systemClock, addressOf, tls, cleartext, loopback }: ServiceParts,
  opened: AsyncDisposableStack,
): Promise<ToolGateway> {
  const signer = await openSigner({
    service: 'tool-gateway',
    keyDir: join(config.dataDir, 'keys'),
    clock,
    rotateEveryMs: config.keyRotationMs,
  });
  const store = await openGatewayStore(config.store, observeCommits(telemetry));
  opened.defer(() => store.close());
  observeOutbox(telemetry, store, clock);
  const tokenFor = (audience: 'supervisor' | typeof TOOL_PROVIDER) =>
    serviceTokens(signer, { audience, replica: config.replica });
  const tools = await LiveTools.open(config.tools, {
    dataDir: config.dataDir,
    variables: config.variables,
    clock,
    telemetry,
    notes: createNotes(store, clock),
    shareOf: (name, limit, user) =>
      createSlotShare({ store, replicas: store.replicas, name, limit, user }),
    providerToken: tokenFor(TOOL_PROVIDER),
    providerTls: tls?.to(TOOL_PROVIDER),
  });
  opened.defer(() => tools.close());
  const trust = createTrust({
    addresses: () => knownAddresses(addressOf),
    telemetry,
    self: signer,
    clock,
    tls,
    loopback,
  });
  opened.defer(() => trust.close());
  const verifier = createVerifier({ trust, clock });
  const supervisor = connectSupervisor({
    address: () => addressOf('supervisor'),
    serviceToken: tokenFor('supervisor'),
    tls: tls?.to('supervisor'),
    loopback,
    telemetry,
  });
  opened.defer(() => supervisor.close());

  const relay = createOutboxRelay({
    store,
    clock,
    ...outboxPublisher(bus, telemetry),
  });
  const inFlightCalls = new InFlightCalls();
  const context: GatewayContext = {
    store,
    clock,
    telemetry,
    signer,
    verifier,
    tools,
    bus,
    inFlightCalls,
    events: createGatewayEvents(telemetry),
    wakeRelay: () => relay.wake(),
    flushSoon: () => relay.flushSoon(),
  };
  // On a store of its own, everybody before has ended; among replicas that takes a while to see.
  await recoverCalls(context);
  const watch = watchFreezes(context, telemetry.log);
  opened.defer(() => watch.stop());
  const recover = { 'calls of replicas that have ended': () => recoverCalls(context) };
  const sweeper = new Sweeper(recover, RECOVER_MS, telemetry.log);
  opened.defer(() => sweeper.stop());

  const routes = gatewayRoutes(context);
  assertRows(routes);
  const server = await createRpcServer({
    host: config.host,
    port: config.port,
    portSetting: 'WRIT_TOOL_GATEWAY_PORT',
    tls: tls?.server,
    cleartext,
    loopback,
    routes,
    gate: internalGate({
      service: 'tool-gateway',
      verifier,
      enforceSlotGrants: false,
      trustDomain: tls?.trustDomain,
    }),
    telemetry,
    // A tool that takes longer may be declared at any time.
    limits: { maxUnaryMs: MAX_TIMEOUT_MS + CALL_OVERHEAD_MS },
  });
  opened.defer(() => server.close(0));
  const delivery = new ReceiptDelivery({
    store,
    supervisor,
    clock,
    log: telemetry.log,
    delayMs: config.receiptDelayMs,
    pollMs: config.receiptPollMs,
    retryMaxMs: config.receiptRetryMaxMs,
  });

  const shutDown = async (): Promise<void> => {
    try {
      await drain(config, server, inFlightCalls, delivery, relay);
    } finally {
      await opened.disposeAsync();
    }
  };
  let stopping: Promise<void> | undefined;
  return {
    name: 'tool-gateway',
    address: server.address,
    store,
    get commits() {
      return store.commits;
    },
    start: async () => {
      relay.start();
      delivery.start();
      if (store.replicas.shared) sweeper.start();
      tools.watch(config.toolsPollMs);
      server.setServing(true);
    },
    stop: () => {
      stopping ??= shutDown();
      return stopping;
    },
  };
}

async function drain(
  { drainMs, flushMs }: ToolGatewayConfig,
  server: RpcServer,
  inFlightCalls: InFlightCalls,
  delivery: ReceiptDelivery,
  relay: OutboxRelay,
): Promise<void> {
  server.setServing(false);
  const closing = server.close(drainMs);
  await inFlightCalls.settle({}, drainMs);
  inFlightCalls.cancel({}, new UnavailableError('SHUTTING_DOWN', 'The tool gateway is stopping.'));
  await inFlightCalls.settle({}, flushMs);
  await closing;
  await delivery.stop();
  const { promise: late, resolve } = Promise.withResolvers<void>();
  const timer = setTimeout(resolve, flushMs);
  // What is not taken in time stays in the outbox.
  await Promise.race([relay.flush().catch(() => undefined), late]);
  clearTimeout(timer);
  await relay.stop();
}
