import { UnavailableError } from '@writ/kernel';
import { isPostgresAvailable, postgresLocation } from '@writ/testing/postgres';
import { describe, expect, it, onTestFinished, vi } from 'vitest';
import {
  createReplicas,
  createSlotShare,
  initialMigration,
  openStore,
  type Replicas,
  type SlotLeasesDatabase,
  type SlotShare,
  type Store,
  type StoreLocation,
  slotLeasesTable,
} from '../src/index.ts';

/** A replica with at most one queued call and one in flight. */
interface Caller {
  readonly store: Store<SlotLeasesDatabase>;
  readonly replicas: Replicas;
  readonly share: SlotShare;
  inUse: number;
  waiting: number;
}

async function openCaller(location: StoreLocation): Promise<Caller> {
  const store = await openStore<SlotLeasesDatabase>({
    location,
    migrations: initialMigration([slotLeasesTable]),
    service: 'slots',
  });
  onTestFinished(() => store.close());
  const replicas = createReplicas(store.db);
  await replicas.start();
  onTestFinished(() => replicas.stop());
  const caller: Caller = {
    store,
    replicas,
    inUse: 0,
    waiting: 0,
    share: createSlotShare({
      ...{ store, replicas, name: 'model', limit: () => 1 },
      user: {
        demand: () => ({ inUse: caller.inUse, waiting: caller.waiting, weight: caller.waiting }),
        granted: () => {
          if (caller.waiting === 0 || caller.inUse >= caller.share.allowance()) return;
          caller.waiting -= 1;
          caller.inUse += 1;
        },
        failed: () => undefined,
      },
    }),
  };
  onTestFinished(() => caller.share.close());
  return caller;
}

/** The slots that each replica holds. */
async function leasesOf({ store }: Caller): Promise<ReadonlyMap<string, number>> {
  const rows = await store.db.selectFrom('slot_leases').selectAll().execute();
  return new Map(rows.map(({ replica, leased }) => [replica, leased]));
}

function ask(caller: Caller): void {
  caller.waiting += 1;
  caller.share.changed();
}

describe.runIf(isPostgresAvailable())('slots that two replicas share', () => {
  it('are no longer requested by a replica whose caller has cancelled (SUP-3)', async () => {
    const location = await postgresLocation();
    const holder = await openCaller(location);
    const other = await openCaller(location);
    ask(holder);
    await expect.poll(() => holder.inUse).toBe(1);
    ask(other);
    await expect.poll(() => holder.share.waiting(0, 1)).toBe(1);
    expect(holder.share.mayReuse()).toBe(false);
    other.waiting = 0;
    await expect.poll(() => holder.share.mayReuse()).toBe(true);
    expect(holder.share.waiting(0, 1)).toBe(0);
  });

  it('stay assigned to a replica that was found dead but has reconnected (SUP-3)', async () => {
    const location = await postgresLocation();
    const lost = await openCaller(location);
    const other = await openCaller(location);
    ask(lost);
    await expect.poll(() => lost.inUse).toBe(1);
    vi.spyOn(other.replicas, 'findDead').mockResolvedValueOnce(new Set([lost.replicas.id]));
    ask(other);
    await expect.poll(() => other.inUse).toBe(1);
    lost.share.changed();
    await expect.poll(async () => (await leasesOf(other)).get(lost.replicas.id)).toBe(1);
    other.inUse = 0;
    other.share.changed();
    let leases = await leasesOf(other);
    while (leases.get(other.replicas.id) === 1) leases = await leasesOf(other);
    expect(leases.get(lost.replicas.id)).toBe(1);
  });

  it('are returned by an idle replica whose first attempt to return them failed (SUP-3)', async () => {
    const location = await postgresLocation();
    const holder = await openCaller(location);
    const other = await openCaller(location);
    ask(holder);
    await expect.poll(() => holder.inUse).toBe(1);
    ask(other);
    await expect.poll(() => holder.share.waiting(0, 1)).toBe(1);
    const busy = new UnavailableError('STORE_BUSY', 'Busy.');
    vi.spyOn(holder.store, 'transaction').mockRejectedValueOnce(busy);
    holder.inUse = 0;
    holder.share.changed();
    await expect.poll(() => other.inUse).toBe(1);
  });
});
