import fc from 'fast-check';
import { expect, it, onTestFinished } from 'vitest';
import { assignSlots, type SlotDemand } from '../src/call-slots/slot-leases.ts';
import {
  initialMigration,
  openStore,
  type SlotLeasesDatabase,
  slotLeasesTable,
} from '../src/index.ts';

const NAMES = ['a', 'b', 'c'] as const;
type Name = (typeof NAMES)[number];

interface ReplicaState {
  inUse: number;
  leased: number;
  waiting: number;
  weight: number;
}

async function openSlots() {
  const store = await openStore<SlotLeasesDatabase>({
    location: { dialect: 'sqlite', file: ':memory:' },
    migrations: initialMigration([slotLeasesTable]),
    service: 'slots',
  });
  onTestFinished(() => store.close());
  return store;
}

it('assigns no slot twice and leaves none free while calls wait, with random calls and crashes (SUP-3)', async () => {
  const step = fc.record({
    replica: fc.constantFrom(...NAMES),
    does: fc.constantFrom('ask', 'end', 'ask', 'end', 'die'),
    weight: fc.constantFrom(0, 1, 2, 4, 8),
  });
  await fc.assert(
    fc.asyncProperty(
      fc.array(step, { maxLength: 40 }),
      fc.integer({ min: 1, max: 4 }),
      async (steps, limit) => {
        const store = await openSlots();
        const states = new Map<Name, ReplicaState>(
          NAMES.map((name) => [name, { inUse: 0, leased: 0, waiting: 0, weight: 0 }]),
        );
        const dead = new Set<string>();
        for (const { replica, does, weight } of steps) {
          const state = states.get(replica);
          if (state === undefined) continue;
          if (does === 'die') {
            states.delete(replica);
            dead.add(replica);
            continue;
          }
          if (does === 'ask') {
            state.waiting += 1;
            state.weight = weight;
          } else if (state.inUse > 0) state.inUse -= 1;
          await store.transaction((trx) =>
            assignSlots(trx, {
              ...{ name: 'model', replica, limit, dead: dead },
              inUse: state.inUse,
              returned: Math.max(0, state.leased - state.inUse),
              waiting: state.waiting,
              weight: state.weight,
            }),
          );
          const rows = await store.db.selectFrom('slot_leases').selectAll().execute();
          for (const row of rows) {
            const holder = states.get(row.replica as Name);
            if (holder === undefined) continue;
            const entered = Math.min(holder.waiting, row.leased - holder.inUse);
            holder.leased = row.leased;
            holder.waiting -= entered;
            holder.inUse += entered;
          }
          const leased = rows
            .filter((row) => row.replica !== '' && !dead.has(row.replica))
            .reduce((sum, row) => sum + row.leased, 0);
          expect(leased).toBeLessThanOrEqual(limit);
          if ([...states.values()].some(({ waiting }) => waiting > 0)) expect(leased).toBe(limit);
        }
      },
    ),
    { numRuns: 60 },
  );
});

it('shares contended slots in the ratio of the waiting weights, BACKGROUND last (SUP-3)', async () => {
  const store = await openSlots();
  const weights: Readonly<Record<string, number>> = { a: 8, b: 2, c: 0 };
  const served: Record<string, number> = { a: 0, b: 0, c: 0 };
  let holder = '';
  const share = (replica: string) =>
    store.transaction((trx) =>
      assignSlots(trx, {
        ...{ name: 'model', replica, limit: 1, inUse: 0, dead: new Set<string>() },
        returned: replica === holder ? 1 : 0,
        waiting: 5,
        weight: weights[replica] ?? 0,
      }),
    );
  for (const replica of ['c', 'b', 'a']) {
    await share(replica);
    holder ||= replica;
  }
  for (let round = 0; round < 100; round += 1) {
    await share(holder);
    const row = await store.db
      .selectFrom('slot_leases')
      .select('replica')
      .where('leased', '=', 1)
      .executeTakeFirstOrThrow();
    holder = row.replica;
    served[holder] = (served[holder] ?? 0) + 1;
  }
  expect(served).toEqual({ a: 80, b: 20, c: 0 });
});

it('deletes the row of a replica that has left, and of the last replica when it becomes idle (SUP-3)', async () => {
  const store = await openSlots();
  const share = (replica: string, demand: Partial<SlotDemand>) =>
    store.transaction((trx) =>
      assignSlots(trx, {
        ...{ name: 'model', replica, limit: 1, inUse: 0, dead: new Set<string>() },
        ...{ returned: 0, waiting: 0, weight: 0 },
        ...demand,
      }),
    );
  const known = async () => {
    const rows = await store.db.selectFrom('slot_leases').select('replica').execute();
    return rows.map(({ replica }) => replica).sort();
  };
  await share('a', { waiting: 1, weight: 1 });
  await share('b', { waiting: 1, weight: 1 });
  await share('a', { returned: 1 });
  // The row of the idle replica is kept until the virtual time reaches its finish tag.
  expect(await known()).toEqual(['', 'a', 'b']);
  await share('a', { leaves: true });
  expect(await known()).toEqual(['', 'b']);
  await share('b', { returned: 1 });
  expect(await known()).toEqual(['']);
});
