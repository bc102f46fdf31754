import { Priority, systemClock } from '@writ/kernel';
import type { StoreLocation } from '@writ/store';
import { createTelemetry } from '@writ/telemetry';
import { openPool } from '../src/app/pool/open-pool.ts';
import { PauseFeed } from '../src/app/pool/pause-feed.ts';
import { PoolRepository } from '../src/app/pool/pool-repository.ts';
import { acquireSlot, releaseSlot } from '../src/app/slot/change-slot.ts';
import { createSpawnEvents } from '../src/events.ts';
import { openSpawnStore, type SpawnStore } from '../src/store/spawn-store.ts';

/** The root of every run. */
export const ROOT = { name: 'lead', instance: 'root' };

/** A spawn-budget without its listener; its grants are not signed. */
export interface PoolReplica<L extends StoreLocation = StoreLocation> {
  readonly location: L;
  readonly store: SpawnStore;
  readonly repository: PoolRepository;
}

interface Run {
  readonly tenant: string;
  readonly runId: string;
}

/** Opens a store whose leases do not expire; the caller closes it. */
export async function openPoolReplica<L extends StoreLocation>(
  location: L,
  onEvents: () => void = () => undefined,
): Promise<PoolReplica<L>> {
  const store = await openSpawnStore(location);
  const repository = new PoolRepository({
    store,
    clock: systemClock,
    leaseMs: 600_000,
    events: createSpawnEvents(createTelemetry({ service: 'test', logLevel: 'silent' })),
    feed: new PauseFeed(),
    onEvents,
  });
  return { location, store, repository };
}

/** Opens the pool of a run. */
export async function openPoolOf(
  repository: PoolRepository,
  run: Run,
  maxAgents: number,
): Promise<void> {
  const request = { ...run, requestId: 'open', digest: 'open', traceparent: '', sessionId: 's' };
  const budget = { maxAgents, allowPreempt: true };
  await openPool(repository, request, { root: ROOT, priority: Priority.NORMAL, budget });
}

/** Acquires the slot of a child of the root. */
export async function acquireChild(
  repository: PoolRepository,
  run: Run,
  instance: string,
  priority: Priority = Priority.NORMAL,
): Promise<void> {
  const context = {
    repository,
    config: { grantTtlMs: 0 },
    signer: { clock: systemClock },
  } as never;
  const key = { ...run, instance, rpc: 'acquire', requestId: instance, digest: instance } as const;
  const agent = { name: 'child', instance };
  await acquireSlot(context, key, { type: 'acquire', agent, parent: ROOT, depth: 1, priority });
}

/** Releases the slot of a child. */
export async function releaseChild(
  repository: PoolRepository,
  run: Run,
  instance: string,
): Promise<void> {
  const key = { ...run, instance, rpc: 'release', requestId: instance, digest: instance } as const;
  await releaseSlot({ repository } as never, key);
}
