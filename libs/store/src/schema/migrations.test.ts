import type { Kysely } from 'kysely';
import { describe, expect, it } from 'vitest';
import { emptyLocation, PLACES } from '../../test/open-ledger.ts';
import { openStore } from '../open-store.ts';
import type { StoreLocation } from '../store.ts';
import type { Migrations } from './migrations.ts';

const table = (name: string) => ({
  async up(db: Kysely<unknown>) {
    await db.schema.createTable(name).addColumn('id', 'text').execute();
  },
});

const first: Migrations = { '0001_first': table('first') };
const both: Migrations = { ...first, '0002_second': table('second') };

async function open(location: StoreLocation, migrations: Migrations) {
  return await openStore<Record<string, { id: string }>>({
    location,
    migrations,
    service: 'supervisor',
  });
}

async function openAndClose(location: StoreLocation, migrations: Migrations): Promise<string[]> {
  const store = await open(location, migrations);
  const tables = await store.db.introspection.getTables();
  await store.close();
  return tables.map(({ name }) => name).filter((name) => !/^(migration|store_mark)/.test(name));
}

const KEPT = PLACES.filter((place) => place !== 'memory');

function nameOf(location: StoreLocation): string {
  return location.dialect === 'sqlite' ? location.file : location.schema;
}

describe.each(KEPT)('migrations of a store in %s', (place) => {
  it('run once, in the order of their names, and new migrations run at the next start', async () => {
    const location = await emptyLocation(place);
    expect(await openAndClose(location, first)).toEqual(['first']);
    expect(await openAndClose(location, first)).toEqual(['first']);
    expect(await openAndClose(location, both)).toEqual(['first', 'second']);
  });

  it('are rolled back together, with an error that names the failed one and the cause (SYS-3)', async () => {
    const location = await emptyLocation(place);
    const failing: Migrations = {
      ...both,
      '0003_third': {
        async up(db: Kysely<unknown>) {
          await table('third').up(db);
          throw new Error('disk on fire');
        },
      },
    };
    await expect(open(location, failing)).rejects.toMatchObject({
      reason: 'STORE_MIGRATION_FAILED',
      message: expect.stringMatching(`0003_third.*${nameOf(location)} failed: disk on fire; `),
      cause: expect.objectContaining({ message: 'disk on fire' }),
    });
    expect(await openAndClose(location, first)).toEqual(['first']);
  });

  it('reject a database that is newer than the code, naming the database and its version (SYS-3)', async () => {
    const location = await emptyLocation(place);
    await openAndClose(location, both);
    await expect(open(location, first)).rejects.toMatchObject({
      kind: 'failed_precondition',
      reason: 'STORE_SCHEMA_TOO_NEW',
      message: expect.stringContaining(`${nameOf(location)} is at version 0002_second`),
    });
    expect(await openAndClose(location, both)).toEqual(['first', 'second']);
  });

  it('reject a database of another service or with renamed migrations', async () => {
    const location = await emptyLocation(place);
    await openAndClose(location, both);
    const renamed: Migrations = { '0001_renamed': table('first'), '0002_second': table('second') };
    await expect(open(location, renamed)).rejects.toMatchObject({
      reason: 'STORE_MIGRATION_CHANGED',
      metadata: { migration: '0001_first' },
    });
  });

  it('reject a new migration that sorts before an applied migration', async () => {
    const location = await emptyLocation(place);
    await openAndClose(location, { '0002_second': table('second') });
    await expect(open(location, both)).rejects.toMatchObject({
      reason: 'STORE_MIGRATION_CHANGED',
      metadata: { migration: '0001_first' },
    });
  });

  it('reject names that do not sort by time', async () => {
    const location = await emptyLocation(place);
    for (const name of ['1_first', 'first', '0001-first', '0001_First']) {
      await expect(open(location, { [name]: table('first') })).rejects.toMatchObject({
        reason: 'STORE_INVALID_MIGRATION_NAME',
        metadata: { migration: name },
      });
    }
  });

  it('run once for two processes that start together', async () => {
    const location = await emptyLocation(place);
    const stores = await Promise.all([open(location, both), open(location, both)]);
    for (const store of stores) {
      expect(await store.db.selectFrom('second').selectAll().execute()).toEqual([]);
      await store.close();
    }
  });
});
