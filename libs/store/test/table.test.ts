import { type Insertable, sql } from 'kysely';
import { describe, expect, expectTypeOf, it, onTestFinished } from 'vitest';
import {
  column,
  type DatabaseOf,
  initialMigration,
  isUniqueViolation,
  openStore,
  type RowOf,
  type Store,
  type TableOf,
  table,
} from '../src/index.ts';
import { emptyLocation, PLACES } from './open-ledger.ts';

type State = 'open' | 'closed';

const accounts = table('accounts', {
  columns: {
    tenant: column.text(),
    name: column.text(),
    state: column.text<State>(),
    step: column.integer(),
    share: column.real(),
    cap: column.bigint().nullable(),
    used: column.bigint().default(0n),
    frozen: column.boolean().default(false),
    note: column.text().default(''),
    opened_at: column.timestamp(),
    closed_at: column.timestamp().nullable(),
  },
  primaryKey: ['tenant', 'name'],
  unique: { accounts_step: ['tenant', 'step'] },
  indexes: {
    accounts_opened: { on: ['tenant', 'opened_at'] },
    accounts_open: { on: ['tenant'], where: ['state', 'in', ['open']] },
    accounts_capped: {
      on: ['name'],
      where: [
        ['state', '=', 'open'],
        ['cap', 'is not', null],
      ],
    },
  },
});

const lines = table('lines', {
  columns: { position: column.position(), text: column.text().unique(), content: column.bytes() },
  indexes: { lines_x: { on: ['text'], where: ['text', '!=', "it's"] } },
});

const TABLES = [accounts, lines] as const;
type AccountsDatabase = DatabaseOf<typeof TABLES>;

const OPENED_AT = new Date('2026-03-04T05:06:07.089Z');
const ACCOUNT: Insertable<TableOf<typeof accounts>> = {
  tenant: 'acme',
  name: 'a',
  state: 'open',
  step: 2 ** 40,
  share: 0.25,
  opened_at: OPENED_AT,
};

async function open(place: (typeof PLACES)[number]): Promise<Store<AccountsDatabase>> {
  const store = await openStore<AccountsDatabase>({
    location: await emptyLocation(place),
    migrations: initialMigration(TABLES),
    service: 'accounts',
  });
  onTestFinished(() => store.close());
  return store;
}

describe.each(PLACES)('a declared table in %s', (place) => {
  it('has the declared columns, types and defaults (EM-4)', async () => {
    const store = await open(place);
    await store.transaction((trx) => trx.insertInto('accounts').values(ACCOUNT).execute());
    const row = await store.db.selectFrom('accounts').select(accounts.columns).executeTakeFirst();
    const defaults = { cap: null, used: 0n, frozen: false, note: '', closed_at: null };
    expect(row).toEqual({ ...ACCOUNT, ...defaults });
  });

  it('enforces its primary key and unique constraints', async () => {
    const store = await open(place);
    const insert = (row: Partial<typeof ACCOUNT>) =>
      store.transaction((trx) =>
        trx
          .insertInto('accounts')
          .values({ ...ACCOUNT, ...row })
          .execute(),
      );
    await insert({});
    for (const row of [{ step: 1 }, { name: 'b' }]) {
      const failure = await insert(row).catch((error: unknown) => error);
      expect(isUniqueViolation(failure)).toBe(true);
    }
    await insert({ name: 'b', step: 1 });
  });

  it('numbers its rows from 1 in the position column', async () => {
    const store = await open(place);
    for (const text of ['x', 'y'])
      await store.transaction((trx) =>
        trx
          .insertInto('lines')
          .values({ text, content: new Uint8Array([1]) })
          .execute(),
      );
    const rows = await store.db.selectFrom('lines').selectAll().orderBy('position').execute();
    expect(rows.map(({ position, text }) => [Number(position), text])).toEqual([
      [1, 'x'],
      [2, 'y'],
    ]);
  });
});

it('restricts a partial index to the rows for which all its conditions hold', async () => {
  const { db } = await open('memory');
  const { rows } = await sql<{
    sql: string;
  }>`select sql from sqlite_master where name = 'accounts_capped'`.execute(db);
  expect(rows[0]?.sql).toMatch(/where "state" = 'open' and "cap" is not null$/);
});

it('lists the columns of a table in the order of their declaration', () => {
  expect(lines.columns).toEqual(['position', 'text', 'content']);
});

it('derives the row type from the declaration', () => {
  type Row = RowOf<typeof accounts>;
  expectTypeOf<Row['state']>().toEqualTypeOf<State>();
  expectTypeOf<Row['cap']>().toEqualTypeOf<bigint | null>();
  expectTypeOf<Row['used']>().toEqualTypeOf<bigint>();
  expectTypeOf<TableOf<typeof accounts>['opened_at']>().toEqualTypeOf<Date>();
  expectTypeOf<RowOf<typeof lines>['position']>().toEqualTypeOf<number | bigint>();
});
