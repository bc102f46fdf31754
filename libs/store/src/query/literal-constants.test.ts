import {
  DummyDriver,
  Kysely,
  SqliteAdapter,
  SqliteIntrospector,
  SqliteQueryCompiler,
} from 'kysely';
import { expect, it } from 'vitest';
import { literalConstants } from './literal-constants.ts';

const db = new Kysely<{ jobs: { id: string; state: string; attempts: number } }>({
  dialect: {
    createAdapter: () => new SqliteAdapter(),
    createDriver: () => new DummyDriver(),
    createIntrospector: (each) => new SqliteIntrospector(each),
    createQueryCompiler: () => new SqliteQueryCompiler(),
  },
}).withPlugin(literalConstants);

it('compiles strings as literals and keeps the other values as parameters', () => {
  const read = db.selectFrom('jobs').select('id').where('state', 'in', ['open', "it's"]);
  expect(read.where('attempts', '<', 3).compile()).toMatchObject({
    sql: `select "id" from "jobs" where "state" in ('open', 'it''s') and "attempts" < ?`,
    parameters: [3],
  });
  const added = db.insertInto('jobs').values({ id: 'a', state: 'open', attempts: 0 }).compile();
  expect(added).toMatchObject({
    sql: `insert into "jobs" ("id", "state", "attempts") values ('a', 'open', ?)`,
    parameters: [0],
  });
});
