import { sql } from 'kysely';
import pg from 'pg';
import { describe, expect, it, onTestFinished } from 'vitest';
import { type Migrations, openStore, type StoreLocation } from '../src/index.ts';
import { entry, type LedgerDatabase, ledgerMigrations } from './ledger.ts';
import { emptyLocation, entryIds, openLedgerAt, PLACES } from './open-ledger.ts';

const REPLICAS = 5;

type Place = Extract<StoreLocation, { readonly dialect: 'postgres' }>;

async function emptySchema(): Promise<Place> {
  const location = await emptyLocation('PostgreSQL');
  if (location.dialect !== 'postgres') throw new Error('unreachable');
  return location;
}

/** Returns the ledger's migrations, which record that they ran, and a slow migration. */
function slowMigrations(ran: string[], during: () => Promise<void>): Migrations {
  const reported = Object.entries(ledgerMigrations).map(([name, { up }]) => [
    name,
    {
      up: async (db: Parameters<typeof up>[0]) => {
        ran.push(name);
        await up(db);
      },
    },
  ]);
  return {
    ...Object.fromEntries(reported),
    '0003_slow': {
      up: async (db) => {
        ran.push('0003_slow');
        await sql`create table once (id integer primary key)`.execute(db);
        await during();
      },
    },
  };
}

async function open(location: Place, migrations: Migrations) {
  const store = await openStore<LedgerDatabase>({ location, migrations, service: 'ledger' });
  onTestFinished(() => store.close());
  return store;
}

/** Opens a connection that can query the other sessions; closed when the test has finished. */
async function openAdmin(location: Place): Promise<pg.Client> {
  const admin = new pg.Client({ connectionString: location.url });
  await admin.connect();
  onTestFinished(() => admin.end());
  return admin;
}

/** Returns the number of ledger sessions that wait for a lock, as they do while another store migrates. */
async function waitingLedgers(admin: pg.Client): Promise<number | null> {
  const { rowCount } = await admin.query(
    `select 1 from pg_stat_activity
     where application_name = 'writ ledger' and wait_event_type = 'Lock'
       and datname = current_database()`,
  );
  return rowCount;
}

describe.runIf(PLACES.includes('PostgreSQL'))('stores of one schema that open at once', () => {
  it('run each migration once and all open (SYS-5)', async () => {
    const location = await emptySchema();
    const admin = await openAdmin(location);
    const ran: string[] = [];
    const migrations = slowMigrations(ran, async () => {
      await expect.poll(() => waitingLedgers(admin)).toBe(REPLICAS - 1);
    });
    const stores = await Promise.all(
      Array.from({ length: REPLICAS }, () => open(location, migrations)),
    );
    expect(ran).toEqual(['0001_outbox', '0002_ledger', '0003_slow']);
    const ids = stores.map((_, n) => `by ${n}`);
    await Promise.all(
      stores.map((store, n) =>
        store.transaction((trx) =>
          trx
            .insertInto('entry')
            .values(entry(ids[n] ?? ''))
            .execute(),
        ),
      ),
    );
    for (const store of stores) expect(await entryIds(store)).toEqual(ids);
  });

  it('run all migrations again if the migrating store loses its connection (SYS-4)', async () => {
    const location = await emptySchema();
    const admin = await openAdmin(location);
    const ran: string[] = [];
    const others: Promise<unknown>[] = [];
    const cut = slowMigrations(ran, async () => {
      const migrations = slowMigrations(ran, async () => undefined);
      for (let n = 1; n < REPLICAS; n += 1) others.push(open(location, migrations));
      await expect.poll(() => waitingLedgers(admin)).toBe(REPLICAS - 1);
      await admin.query(
        `select pg_terminate_backend(pid) from pg_stat_activity
         where application_name = 'writ cut' and datname = current_database()`,
      );
    });
    await expect(openStore({ location, migrations: cut, service: 'cut' })).rejects.toMatchObject({
      kind: 'unavailable',
      reason: expect.stringMatching(/^STORE_(UNREACHABLE|COMMIT_FAILED)$/),
    });
    await Promise.all(others);
    const once = ['0001_outbox', '0002_ledger', '0003_slow'];
    expect(ran).toEqual([...once, ...once]);
  });

  it('reject the older of two releases unless it opened first', async () => {
    const location = await emptySchema();
    const newer = {
      ...ledgerMigrations,
      '0004_newer': slowMigrations([], async () => undefined)['0003_slow'],
    };
    const [old, fresh] = await Promise.allSettled([
      openLedgerAt(location),
      open(location, newer as Migrations),
    ]);
    expect(fresh.status).toBe('fulfilled');
    if (old.status === 'rejected')
      expect(old.reason).toMatchObject({ reason: 'STORE_SCHEMA_TOO_NEW' });
  });
});
