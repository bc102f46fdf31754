import { join } from 'node:path';
import { createTrust, createVerifier, openSigner } from '@writ/identity';
import { systemClock } from '@writ/kernel';
import {
  knownAddresses,
  observeCommits,
  observeOutbox,
  outboxPublisher,
  type Service,
  type ServiceParts,
  Sweeper,
} from '@writ/service';
import { createOutboxRelay, type OutboxRelay } from '@writ/store';
import { CallLedger } from './app/calls/call-ledger.ts';
import { watchFreezes } from './app/calls/freeze-watch.ts';
import { ModelCalls } from './app/calls/model-calls.ts';
import { ModelSlots } from './app/calls/model-slots.ts';
import {
  expireReservations,
  settleCallsOfDeadReplicas,
  settleOrphanedCalls,
} from './app/calls/recovery.ts';
import type { ExecutionMeterConfig } from './config.ts';
import type { MeterContext } from './context.ts';
import { createMeterEvents } from './events.ts';
import { PriceList } from './providers/catalog/price-list.ts';
import { readCatalog } from './providers/catalog/read-catalog.ts';
import { lazyProvider } from './providers/lazy-provider.ts';
import { openDoor } from './rpc/listen.ts';
import type { RpcContext } from './rpc/rpc-context.ts';
import { openMeterStore } from './store/meter-store.ts';

/** Keeps tabs and makes model calls. */
export interface ExecutionMeterService extends Service {
  readonly name: 'execution-meter';
  /** Durable commits of requests since the start. */
  readonly commits: number;
}

/** Time limit for the last flush at shutdown; undelivered events remain in the outbox. */
const FLUSH_MS = 2_000;

/**
 * Creates an execution meter. Its port is bound; it serves requests after `start()`.
 * @throws ConfigError for an invalid models.yaml, UnavailableError PORT_IN_USE with the setting,
 *   and the errors of opening store and keys
 */
export async function createExecutionMeter(
  config: ExecutionMeterConfig,
  parts: ServiceParts,
): Promise<ExecutionMeterService> {
  const opened = new AsyncDisposableStack();
  try {
    return await create(config, parts, opened);
  } catch (error) {
    await opened.disposeAsync();
    throw error;
  }
}

async function create(
  config: ExecutionMeterConfig,
  parts: ServiceParts,
  opened: AsyncDisposableStack,
): Promise<ExecutionMeterService> {
  const { context, relay } = await createContext(config, parts, opened);
  const { telemetry, store } = context;
  const ledger = new CallLedger(context);
  const prices = new PriceList(context.clock);
  const slots = new ModelSlots(store);
  opened.defer(() => slots.close());
  const calls = new ModelCalls({
    context,
    ledger,
    prices,
    slots,
    provider: lazyProvider(),
  });
  const hurryEvents = () => relay.flushSoon();
  const door = await openDoor({ ...context, calls, prices, hurryEvents }, parts);
  opened.defer(() => door.close(0));
  const watch = watchFreezes(context, calls);
  opened.defer(() => watch.stop());
  const sweeps = {
    'expired reservations': () => expireReservations(context, ledger, calls),
    'calls of dead replicas': () => settleCallsOfDeadReplicas(context, ledger, calls),
  };
  const sweeper = new Sweeper(sweeps, config.sweepMs, telemetry.log);
  let stopping: Promise<void> | undefined;

  const stop = async (): Promise<void> => {
    // Calls in flight finish within drainMs or are aborted; both are settled.
    await Promise.all([door.close(config.drainMs + 1_000), calls.close(config.drainMs)]);
    await sweeper.stop();
    await Promise.race([Promise.allSettled([relay.flush()]), timeout(FLUSH_MS)]);
    await relay.stop();
    await opened.disposeAsync();
  };

  return {
    name: 'execution-meter',
    address: door.address,
    get commits() {
      return store.commits;
    },
    async start() {
      const settled = await settleOrphanedCalls(context, ledger);
      if (settled > 0)
        telemetry.log.warn({ calls: settled }, 'settled calls of a previous process');
      relay.start();
      sweeper.start();
      door.setServing(true);
    },
    stop() {
      stopping ??= stop();
      return stopping;
    },
  };
}

async function createContext(
  config: ExecutionMeterConfig,
  { telemetry, bus, clock = systemClock, addressOf, tls, loopback }: ServiceParts,
  opened: AsyncDisposableStack,
): Promise<{
  readonly context: Omit<RpcContext, 'calls' | 'prices' | 'hurryEvents'>;
  readonly relay: OutboxRelay;
}> {
  const { file, overrides } = config.catalog;
  const { catalog, warnings } = readCatalog(file, config.variables, overrides);
  for (const warning of warnings) telemetry.log.warn(warning);
  if (config.captureContent)
    telemetry.log.warn('content capture is enabled: spans contain prompts and answers');
  const keyDir = join(config.dataDir, 'keys');
  const signer = await openSigner({
    service: 'execution-meter',
    keyDir,
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
  const events = createMeterEvents(telemetry);
  const store = await openMeterStore(
    config.store,
    (trx) => {
      if (events.hasEvents(trx)) relay?.wake();
    },
    observeCommits(telemetry),
  );
  opened.defer(() => store.close());
  observeOutbox(telemetry, store, clock);
  relay = createOutboxRelay({
    store,
    clock,
    ...outboxPublisher(bus, telemetry),
  });
  const meter: MeterContext = {
    config,
    store,
    clock,
    telemetry,
    events,
    catalog,
  };
  return { context: { ...meter, signer, verifier: createVerifier({ trust, clock }) }, relay };
}

function timeout(ms: number): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>();
  setTimeout(resolve, ms).unref();
  return promise;
}
