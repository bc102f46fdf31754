import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { assertRows, createTrust, createVerifier, internalGate, openSigner } from '@writ/identity';
import { systemClock } from '@writ/kernel';
import { createRpcServer } from '@writ/rpc';
import {
  knownAddresses,
  observeCommits,
  observeOutbox,
  outboxPublisher,
  type Service,
  type ServiceParts,
} from '@writ/service';
import { createOutboxRelay, type OutboxRelay } from '@writ/store';
import { Ledger } from './app/pool/ledger.ts';
import { PauseFeed } from './app/pool/pause-feed.ts';
import { createSweep } from './app/pool/sweep.ts';
import type { SpawnBudgetConfig } from './config.ts';
import { createSpawnEvents } from './events.ts';
import { spawnBudgetRoutes } from './rpc/index.ts';
import { observeSlots } from './store/observe-slots.ts';
import { openSpawnStore } from './store/spawn-store.ts';

/** The keeper of headcounts. */
export interface SpawnBudgetService extends Service {
  readonly name: 'spawn-budget';
}

/** How long the last events may take to be delivered; they stay in the outbox otherwise. */
const FLUSH_MS = 2_000;

/**
 * Creates spawn-budget: its port is bound, and it says SERVING after `start()`.
 * @throws UnavailableError PORT_IN_USE, and what opening the store and the keys throws; what was
 *   opened is closed again
 */
export async function createSpawnBudget(
  config: SpawnBudgetConfig,
  parts: ServiceParts,
): Promise<SpawnBudgetService> {
  const opened = new AsyncDisposableStack();
  try {
    return await open(config, parts, opened);
  } catch (error) {
    await opened.disposeAsync();
    throw error;
  }
}

async function open(
  config: SpawnBudgetConfig,
  { telemetry, bus, clock = systemClock, addressOf, tls, cleartext, loopback }: ServiceParts,
  opened: AsyncDisposableStack,
): Promise<SpawnBudgetService> {
  const { log } = telemetry;
  const signer = await openSigner({
    service: 'spawn-budget',
    keyDir: join(config.dataDir, 'keys'),
    clock,
    rotateEveryMs: config.keyRotationMs,
  });
  const addresses = () => knownAddresses(addressOf);
  const trust = createTrust({ addresses, telemetry, self: signer, clock, tls, loopback });
  opened.defer(() => trust.close());
  const store = await openSpawnStore(config.store, observeCommits(telemetry));
  opened.defer(() => store.close());
  observeOutbox(telemetry, store, clock);
  observeSlots(telemetry, store);
  const relay = createOutboxRelay({
    store,
    clock,
    ...outboxPublisher(bus, telemetry),
    // A pause has to hold everywhere soon (SB-4).
    flushIntervalMs: 0,
  });
  const feed = new PauseFeed();
  const ledger = new Ledger({
    store,
    clock,
    leaseMs: config.leaseMs,
    events: createSpawnEvents(telemetry),
    feed,
    onEvents: () => relay.wake(),
  });
  const { sweepMs, keepClosedMs } = config;
  const sweep = createSweep({ store, ledger, clock, log, sweepMs, keepClosedMs });
  const verifier = createVerifier({ trust, clock });
  const routes = spawnBudgetRoutes({ config, ledger, feed, signer, verifier });
  assertRows(routes);
  const server = await createRpcServer({
    host: config.host,
    port: config.port,
    tls: tls?.server,
    cleartext,
    loopback,
    routes,
    // None of its RPCs asks for a slot grant: it is the one that gives them.
    gate: internalGate({
      service: 'spawn-budget',
      verifier,
      enforceSlotGrants: false,
      trustDomain: tls?.trustDomain,
    }),
    telemetry,
  });
  opened.defer(() => server.close(0));
  let stopping: Promise<void> | undefined;

  const stop = async (): Promise<void> => {
    await sweep.stop();
    feed.close();
    await server.close(config.drainMs);
    await flush(relay);
    await relay.stop();
    await opened.disposeAsync();
  };

  return {
    name: 'spawn-budget',
    address: server.address,
    get commits() {
      return store.commits;
    },
    async start() {
      relay.start();
      sweep.start();
      server.setServing(true);
    },
    stop() {
      stopping ??= stop();
      return stopping;
    },
  };
}

/** What is not taken in time stays in the outbox for the next start. */
async function flush(relay: OutboxRelay): Promise<void> {
  const enough = new AbortController();
  const late = sleep(FLUSH_MS, undefined, { signal: enough.signal });
  await Promise.race([Promise.allSettled([relay.flush()]), Promise.allSettled([late])]);
  enough.abort();
}
