import { newId } from '@writ/kernel';
import type { Kysely, Transaction } from 'kysely';
import { column, type TableOf, table } from '../schema/table.ts';
import type { Store } from '../store.ts';

/**
 * The mark of a store. An older copy of the store has a lower mark; a different database has a different generation.
 */
export interface StoreMark {
  /** Id of the database, created with it. */
  readonly generation: string;
  /** Increases while the store is in use. */
  readonly mark: number;
}

const storeMarks = table('store_mark', {
  columns: { id: column.integer(), generation: column.text(), mark: column.integer() },
  primaryKey: ['id'],
});

interface MarkDatabase {
  store_mark: TableOf<typeof storeMarks>;
}

/** Id of the only row. */
const ROW = 1;

/** Returns the mark of a store, and creates it if the store has none. Called in the transaction of the migrations. */
export async function ensureMark(trx: Kysely<unknown>): Promise<StoreMark> {
  const tables = await trx.introspection.getTables();
  if (!tables.some(({ name }) => name === storeMarks.name)) {
    await storeMarks.create(trx);
    const first = { id: ROW, generation: newId('gen'), mark: 0 };
    await asMarks(trx).insertInto('store_mark').values(first).execute();
  }
  return await readMark(trx);
}

async function readMark<DB>(db: Kysely<DB>): Promise<StoreMark> {
  return await asMarks(db)
    .selectFrom('store_mark')
    .select(['generation', 'mark'])
    .where('id', '=', ROW)
    .executeTakeFirstOrThrow();
}

/**
 * Raises the mark of a store durably, in a background transaction.
 * @param next computes the new mark; default: increments it by one
 */
export async function advanceMark<DB>(
  store: Pick<Store<DB>, 'transaction'>,
  next: (found: StoreMark, trx: Transaction<DB>) => Promise<StoreMark> | StoreMark = oneMore,
): Promise<StoreMark> {
  return await store.transaction(
    async (trx) => {
      // Locks the row, so that no replica writes the same mark.
      await asMarks(trx)
        .updateTable('store_mark')
        .set((eb) => ({ mark: eb('mark', '+', 1) }))
        .where('id', '=', ROW)
        .execute();
      const { generation, mark } = await readMark(trx);
      const found = { generation, mark: mark - 1 };
      const wanted = await next(found, trx);
      if (wanted.generation !== generation || wanted.mark !== mark) {
        await asMarks(trx).updateTable('store_mark').set(wanted).where('id', '=', ROW).execute();
      }
      return wanted;
    },
    { background: true },
  );
}

function oneMore({ generation, mark }: StoreMark): StoreMark {
  return { generation, mark: mark + 1 };
}

function asMarks<DB>(db: Kysely<DB>): Kysely<MarkDatabase> {
  return db as unknown as Kysely<MarkDatabase>;
}
