import type { Kysely } from 'kysely';
import { describe, expect, it } from 'vitest';
import { tempFolder } from '../test/temp-folder.ts';
import type { Migrations } from './migrations.ts';
import { openStore } from './open-store.ts';

const table = (name: string) => ({
  async up(db: Kysely<unknown>) {
    await db.schema.createTable(name).addColumn('id', 'text').execute();
  },
});

const first: Migrations = { '0001_first': table('first') };
const both: Migrations = { ...first, '0002_second': table('second') };

async function open(file: string, migrations: Migrations) {
  return await openStore<Record<string, { id: string }>>({
    location: { dialect: 'sqlite', file },
    migrations,
    service: 'supervisor',
  });
}

async function openAndClose(file: string, migrations: Migrations): Promise<string[]> {
  const store = await open(file, migrations);
  const tables = await store.db.introspection.getTables();
  await store.close();
  return tables.map(({ name }) => name).filter((name) => !name.startsWith('migration'));
}

describe('migrations', () => {
  it('run once, in the order of their names, and later ones are added', async () => {
    const folder = tempFolder();
    const file = folder.file('a.db');
    expect(await openAndClose(file, first)).toEqual(['first']);
    expect(await openAndClose(file, first)).toEqual(['first']);
    expect(await openAndClose(file, both)).toEqual(['first', 'second']);
  });

  it('are all or none, and the error names the one that failed', async () => {
    const folder = tempFolder();
    const file = folder.file('a.db');
    const failing: Migrations = {
      ...both,
      '0003_third': {
        async up(db: Kysely<unknown>) {
          await table('third').up(db);
          throw new Error('disk on fire');
        },
      },
    };
    await expect(open(file, failing)).rejects.toMatchObject({
      reason: 'STORE_MIGRATION_FAILED',
      message: expect.stringMatching(/0003_third.*a\.db/),
      cause: expect.objectContaining({ message: 'disk on fire' }),
    });
    expect(await openAndClose(file, first)).toEqual(['first']);
  });

  it('refuse a database that is newer than the code, naming file and version (SYS-3)', async () => {
    const folder = tempFolder();
    const file = folder.file('a.db');
    await openAndClose(file, both);
    await expect(open(file, first)).rejects.toMatchObject({
      kind: 'failed_precondition',
      reason: 'STORE_NEWER_THAN_CODE',
      message: expect.stringContaining(`${file} is at version 0002_second`),
    });
    expect(await openAndClose(file, both)).toEqual(['first', 'second']);
  });

  it('refuse a file whose migrations were renamed, or that is of another service', async () => {
    const folder = tempFolder();
    const file = folder.file('a.db');
    await openAndClose(file, both);
    const renamed: Migrations = { '0001_renamed': table('first'), '0002_second': table('second') };
    await expect(open(file, renamed)).rejects.toMatchObject({
      reason: 'STORE_MIGRATION_CHANGED',
      metadata: { migration: '0001_first' },
    });
  });

  it('refuse a new one that sorts before one that has run', async () => {
    const folder = tempFolder();
    const file = folder.file('a.db');
    await openAndClose(file, { '0002_second': table('second') });
    await expect(open(file, both)).rejects.toMatchObject({
      reason: 'STORE_MIGRATION_CHANGED',
      metadata: { migration: '0001_first' },
    });
  });

  it('refuse names whose order would not be the order of time', async () => {
    for (const name of ['1_first', 'first', '0001-first', '0001_First']) {
      await expect(open(':memory:', { [name]: table('first') })).rejects.toMatchObject({
        reason: 'STORE_BAD_MIGRATION_NAME',
        metadata: { migration: name },
      });
    }
  });

  it('let two processes that start together end with one schema', async () => {
    const folder = tempFolder();
    const file = folder.file('a.db');
    const stores = await Promise.all([open(file, both), open(file, both)]);
    for (const store of stores) {
      expect(await store.db.selectFrom('second').selectAll().execute()).toEqual([]);
      await store.close();
    }
  });

  it('are refused for PostgreSQL with the setting to change, and without its url', async () => {
    const location = { dialect: 'postgres', url: 'postgres://u:secret@h/d', schema: 's' } as const;
    const opening = openStore({ location, migrations: first, service: 'supervisor' });
    await expect(opening).rejects.toMatchObject({
      kind: 'unimplemented',
      metadata: { field: 'location.dialect' },
      message: expect.not.stringContaining('secret'),
    });
  });
});
