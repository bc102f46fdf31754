import { freezeRecovered, watchFreezes } from '@writ/freeze';
import { serviceTokens, TOOL_PROVIDER } from '@writ/identity';
import { TOOL_CALL_TIMEOUT_MS, UnavailableError } from '@writ/kernel';
import { defineService, type ServiceHost, Sweeper } from '@writ/service';
import { createSlotShare } from '@writ/store';
import { InFlightCalls } from './app/calls/in-flight-calls.ts';
import { recoverCalls } from './app/calls/recover-calls.ts';
import { createReceiptDelivery, createRefusalDelivery } from './app/receipts/receipt-delivery.ts';
import type { ToolGatewayConfig } from './config.ts';
import type { GatewayContext } from './context.ts';
import { createGatewayEvents } from './events.ts';
import { connectSupervisor } from './peers/supervisor.ts';
import { gatewayRoutes } from './rpc/index.ts';
import { LiveTools } from './sources/live-tools.ts';
import { openGatewayStore } from './store/gateway-store.ts';

/** The service that executes tools. */
export type ToolGateway = Awaited<ReturnType<typeof createToolGateway>>;

/** How often calls of dead replicas are recovered. */
const RECOVERY_INTERVAL_MS = 1_000;

/**
 * Creates a tool gateway, and recovers the calls that a previous process left without an outcome: a destructive call
 * gets the outcome UNKNOWN, any other call waits until it is repeated or voided.
 * @throws ConfigError listing the invalid entries of tools.yaml, or naming the module that cannot be used
 */
export const createToolGateway = defineService({
  name: 'tool-gateway',
  async open(host: ServiceHost<ToolGatewayConfig>) {
    const { config, parts, telemetry, bus, clock, peerClocks, signer, verifier, relay } = host;
    const { addressOf, tls, loopback } = parts;
    const { log } = telemetry;
    const store = await host.openStore((observer) => openGatewayStore(config.store, observer), {
      onRecovery: (trx, order) => freezeRecovered(trx, order, clock.now()),
    });
    const tokenFor = (audience: 'supervisor' | typeof TOOL_PROVIDER) =>
      serviceTokens(signer, { audience, replica: config.replica });
    const tools = await LiveTools.open(config.tools, {
      dataDir: config.dataDir,
      variables: config.variables,
      clock,
      telemetry,
      shareOf: (name, limit, user) =>
        createSlotShare({ store, replicas: store.replicas, name, limit, user }),
      providerToken: tokenFor(TOOL_PROVIDER),
      providerTls: tls?.to(TOOL_PROVIDER),
    });
    host.defer(() => tools.close());
    const supervisor = connectSupervisor({
      address: () => addressOf('supervisor'),
      serviceToken: tokenFor('supervisor'),
      tls: tls?.to('supervisor'),
      loopback,
      telemetry,
      clock,
      onPeerTime: (timeMs) => peerClocks.observe('supervisor', timeMs),
    });
    host.defer(() => supervisor.close());
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
    // With a single replica, this recovers all calls of the previous process. With several replicas, a dead replica is
    // detected later, so the sweeper repeats the recovery.
    await recoverCalls(context);
    const watch = watchFreezes({ store, calls: inFlightCalls, log });
    host.defer(() => watch.stop());
    const recover = { 'calls of dead replicas': () => recoverCalls(context) };
    const sweeper = new Sweeper(recover, RECOVERY_INTERVAL_MS, log, host.isClockSkewed);
    const deliveryOptions = {
      store,
      supervisor,
      clock,
      log,
      delayMs: config.receiptDelayMs,
      pollMs: config.receiptPollMs,
      retryMaxMs: config.receiptRetryMaxMs,
    };
    const deliveries = [
      createReceiptDelivery(deliveryOptions),
      createRefusalDelivery(deliveryOptions),
    ];
    const server = await host.listen(gatewayRoutes(context), {
      // Tools with a longer timeout may be added at any time.
      limits: { maxUnaryMs: TOOL_CALL_TIMEOUT_MS },
    });
    return {
      server,
      prepare: async () => tools.watch(config.toolsPollMs),
      background: store.replicas.shared ? [...deliveries, sweeper] : deliveries,
      drain: () => drain(inFlightCalls, config),
      limits: { flushMs: config.flushMs },
      exposes: { store },
    };
  },
});

/** Waits for the calls in flight, then cancels those that are left and records their outcome. */
async function drain(
  calls: InFlightCalls,
  { drainMs, flushMs }: Pick<ToolGatewayConfig, 'drainMs' | 'flushMs'>,
): Promise<void> {
  await calls.settle({}, drainMs);
  calls.cancel({}, new UnavailableError('SHUTTING_DOWN', 'The tool gateway is shutting down.'));
  await calls.settle({}, flushMs);
}
