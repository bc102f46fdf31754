import { isPostgresAvailable, postgresLocation } from '@writ/testing/postgres';
import { ReplicaSet, runSchedules, type Schedule } from '@writ/testing/schedules';
import { describe, expect, it, onTestFinished, vi } from 'vitest';
import { openSharedStore, type SharedStore, type StoreLocation } from '../src/index.ts';
import { entry, type LedgerDatabase, ledgerMigrations } from './ledger.ts';
import { entryIds } from './open-ledger.ts';
import { tempFolder } from './temp-folder.ts';

/** A replica that consists only of its ledger store. */
interface Replica {
  readonly store: SharedStore<LedgerDatabase>;
}

const LEDGER_SERVICE = {
  open: async (location: StoreLocation): Promise<Replica> => ({
    store: await openSharedStore<LedgerDatabase>({
      location,
      migrations: ledgerMigrations,
      service: 'ledger',
    }),
  }),
};

const DIALECTS = isPostgresAvailable() ? (['sqlite', 'postgres'] as const) : (['sqlite'] as const);

async function openReplicas(dialect: 'sqlite' | 'postgres'): Promise<ReplicaSet<Replica>> {
  const location =
    dialect === 'postgres'
      ? await postgresLocation()
      : ({ dialect, file: tempFolder().file('ledger.db') } as const);
  const replicas = await ReplicaSet.open(LEDGER_SERVICE, location, dialect === 'postgres' ? 2 : 1);
  onTestFinished(() => replicas.close());
  replicas.use(1);
  return replicas;
}

const first = () => 0;

describe.each(DIALECTS)('replicas on %s', (dialect) => {
  it('keep only committed data after a kill and answer the request in another process (SYS-5)', async () => {
    const replicas = await openReplicas(dialect);
    await replicas.request(first, ({ store }) =>
      store.transaction((trx) => trx.insertInto('entry').values(entry('committed')).execute()),
    );
    const begun = Promise.withResolvers<void>();
    const released = Promise.withResolvers<void>();
    const tried: SharedStore<LedgerDatabase>[] = [];
    const interrupted = replicas.request(first, ({ store }) =>
      store.transaction(async (trx) => {
        tried.push(store);
        const attempt = tried.length;
        await trx
          .insertInto('entry')
          .values(entry(`attempt ${attempt}`))
          .execute();
        if (attempt > 1) return attempt;
        begun.resolve();
        await released.promise;
        return attempt;
      }),
    );
    await begun.promise;
    await replicas.kill(first);
    // The next process answers the request. It sees the rows that the first process committed, but not the rows of the
    // transaction that was open.
    expect(await interrupted).toBe(2);
    expect(tried[1]).not.toBe(tried[0]);
    const [next] = (await replicas.all()) as [Replica];
    expect(await entryIds(next.store)).toEqual(['attempt 2', 'committed']);
    released.resolve();
  });

  it('open a new store with the committed data after a restart (SYS-5)', async () => {
    const replicas = await openReplicas(dialect);
    await replicas.request(first, ({ store }) =>
      store.transaction((trx) => trx.insertInto('entry').values(entry('committed')).execute()),
    );
    const [before] = (await replicas.all()) as [Replica];
    await replicas.restart(first);
    const [after] = (await replicas.all()) as [Replica];
    expect(after.store).not.toBe(before.store);
    expect(await entryIds(after.store)).toEqual(['committed']);
  });
});

describe.each(DIALECTS)('random schedules on %s', (dialect) => {
  it('report the seed when an invariant is violated (SYS-5)', async () => {
    vi.stubEnv('WRIT_TEST_SEED', '0');
    const service = {
      ...LEDGER_SERVICE,
      guard: async () => undefined,
      scenario: ({ seed, replicas }: Schedule<Replica>) => ({
        prepare: async () => undefined,
        step: async (random: () => number, name: string) => {
          await replicas.request(random, ({ store }) =>
            store.transaction((trx) => trx.insertInto('entry').values(entry(name)).execute()),
          );
        },
        check: async () => {
          if (seed === 3) throw new Error('an invariant does not hold');
        },
      }),
    };
    const size = { maxReplicas: dialect === 'postgres' ? 2 : 1, clients: 2, steps: 3 };
    const options = { service, dialect, schedules: 4, ...size };
    await expect(runSchedules(options)).rejects.toThrow(
      `schedule 3 on ${dialect}: an invariant does not hold`,
    );
  });
});
