import { defineService, type ServiceHost } from '@writ/service';
import { PauseFeed } from './app/pool/pause-feed.ts';
import { PoolRepository } from './app/pool/pool-repository.ts';
import { createSlotReclaimer } from './app/pool/reclaim-slots.ts';
import type { SpawnBudgetConfig } from './config.ts';
import { createSpawnEvents } from './events.ts';
import { spawnBudgetRoutes } from './rpc/index.ts';
import { observeSlots } from './store/observe-slots.ts';
import { openSpawnStore } from './store/spawn-store.ts';

/** The service that keeps the headcount of every run. */
export type SpawnBudgetService = Awaited<ReturnType<typeof createSpawnBudget>>;

/** Creates spawn-budget. */
export const createSpawnBudget = defineService({
  name: 'spawn-budget',
  async open(host: ServiceHost<SpawnBudgetConfig>) {
    const { config, telemetry, clock, signer, verifier, relay } = host;
    // No flush interval, because a pause must reach all workers soon (SB-4).
    const store = await host.openStore((observer) => openSpawnStore(config.store, observer), {
      flushIntervalMs: 0,
    });
    observeSlots(telemetry, store);
    const feed = new PauseFeed();
    const repository = new PoolRepository({
      store,
      clock,
      leaseMs: config.leaseMs,
      events: createSpawnEvents(telemetry),
      feed,
      onEvents: () => relay.wake(),
    });
    const { sweepMs, keepClosedMs } = config;
    const { isClockSkewed } = host;
    const { log } = telemetry;
    const reclaimer = createSlotReclaimer({
      store,
      repository,
      clock,
      log,
      sweepMs,
      keepClosedMs,
      isClockSkewed,
    });
    const routes = spawnBudgetRoutes({ config, repository, feed, signer, verifier });
    const server = await host.listen(routes);
    return { server, background: [reclaimer], drain: () => feed.close() };
  },
});
