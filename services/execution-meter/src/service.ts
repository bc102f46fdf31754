import { join } from 'node:path';
import type { Bus } from '@writ/bus';
import { createTrust, createVerifier, openSigner, type ServiceName } from '@writ/identity';
import { type Clock, isWritError, systemClock } from '@writ/kernel';
import { createOutboxRelay, type OutboxRelay } from '@writ/store';
import type { Telemetry } from '@writ/telemetry';
import type { ExecutionMeterConfig } from './config.ts';
import type { MeterContext } from './context.ts';
import { createMeterEvents } from './events.ts';
import { CallBooks } from './providers/calls/call-books.ts';
import { ModelCalls } from './providers/calls/model-calls.ts';
import { expireReservations, settleLeftovers } from './providers/calls/recovery.ts';
import { PriceList } from './providers/catalog/price-list.ts';
import { readCatalog } from './providers/catalog/read-catalog.ts';
import { lazyProvider } from './providers/lazy-provider.ts';
import { ModelSlots } from './providers/slots.ts';
import { Sweeper } from './providers/sweeper.ts';
import { openDoor } from './rpc/listen.ts';
import type { RpcContext } from './rpc/rpc-context.ts';
import { openMeterStore } from './store/meter-store.ts';

/** What an execution meter is given by whoever runs it. */
export interface ExecutionMeterParts {
  readonly telemetry: Telemetry;
  readonly bus: Bus;
  /** Default: the machine's. */
  readonly clock?: Clock;
  /** Where the other services are, `host:port`; asked when their keys are needed first. */
  readonly addressOf: (service: ServiceName) => string;
}

/** The tabs, and the wire to the models. */
export interface ExecutionMeterService {
  readonly name: 'execution-meter';
  /** `host:port` for services. */
  readonly address: string;
  /** Durable commits since the start that a request waited for. */
  readonly commits: number;
  /** Settles what a former process left behind, begins background work, and serves. */
  start(): Promise<void>;
  /** Drains, settles what is in flight, delivers its last events and closes; once more changes nothing. */
  stop(): Promise<void>;
}

/** How long the last events may take to be delivered; they stay in the outbox otherwise. */
const FLUSH_MS = 2_000;

/**
 * Creates an execution meter: its port is bound, and nothing is served before `start()`.
 * @throws ConfigError naming what is wrong in models.yaml, UnavailableError PORT_IN_USE naming the
 *   setting, and what opening the store and the keys throws; what was opened is closed again
 */
export async function createExecutionMeter(
  config: ExecutionMeterConfig,
  parts: ExecutionMeterParts,
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
  parts: ExecutionMeterParts,
  opened: AsyncDisposableStack,
): Promise<ExecutionMeterService> {
  const { context, relay } = await createContext(config, parts, opened);
  const { telemetry, store } = context;
  const books = new CallBooks(context);
  const prices = new PriceList(context.clock);
  const slots = new ModelSlots();
  const calls = new ModelCalls({ context, books, prices, slots, ask: lazyProvider() });
  const door = await openDoor({ ...context, calls, prices });
  opened.defer(() => door.close(0));
  const sweep = () => expireReservations(context, books, calls);
  const sweeper = new Sweeper(sweep, config.sweepMs, telemetry.log);
  let stopping: Promise<void> | undefined;

  const stop = async (): Promise<void> => {
    // Calls under way are answered if they hurry, else aborted; in either case they are settled.
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
      const left = await settleLeftovers(context, books);
      if (left > 0) telemetry.log.warn({ calls: left }, 'Calls of a former process were settled.');
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
  { telemetry, bus, clock = systemClock, addressOf }: ExecutionMeterParts,
  opened: AsyncDisposableStack,
): Promise<{
  readonly context: Omit<RpcContext, 'calls' | 'prices'>;
  readonly relay: OutboxRelay;
}> {
  const { file, overrides } = config.catalog;
  const { catalog, warnings } = readCatalog(file, config.variables, overrides);
  for (const warning of warnings) telemetry.log.warn(warning);
  const keyDir = join(config.dataDir, 'keys');
  const signer = await openSigner({ service: 'execution-meter', keyDir, clock });
  const trust = createTrust({
    addresses: () => addressesOf(addressOf),
    telemetry,
    self: signer,
    clock,
  });
  opened.defer(async () => trust.close());
  let relay: OutboxRelay | undefined;
  const store = await openMeterStore(config.store, () => relay?.nudge());
  opened.defer(() => store.close());
  relay = createOutboxRelay({
    store,
    publish: (message) => bus.publish(message),
    onError: (error, failure) => telemetry.log.warn({ err: error, ...failure }, 'event not taken'),
    clock,
  });
  const meter: MeterContext = {
    config,
    store,
    clock,
    telemetry,
    events: createMeterEvents(telemetry),
    catalog,
  };
  return { context: { ...meter, signer, verifier: createVerifier({ trust, clock }) }, relay };
}

/** Of the services whose tokens count here; those that are not up yet are not needed to trust the others. */
function addressesOf(addressOf: ExecutionMeterParts['addressOf']) {
  const known = (service: ServiceName) => {
    try {
      return { [service]: addressOf(service) };
    } catch (error) {
      if (isWritError(error)) return {};
      throw error;
    }
  };
  return { ...known('supervisor'), ...known('agent-worker'), ...known('spawn-budget') };
}

function timeout(ms: number): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>();
  setTimeout(resolve, ms).unref();
  return promise;
}
