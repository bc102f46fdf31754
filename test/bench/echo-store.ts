import { addPosition, openStore } from '@writ/store';

interface EchoDatabase {
  echoes: { echoed_at: Date };
}

/** The store of an echo server. */
export interface EchoStore {
  /** Inserts a row with one column and waits until it is durable. */
  commit(): Promise<void>;
  close(): Promise<void>;
}

/** Opens the store of an echo server in a file or in memory. */
export async function openEchoStore(file = ':memory:'): Promise<EchoStore> {
  const store = await openStore<EchoDatabase>({
    location: { dialect: 'sqlite', file },
    service: 'echo',
    migrations: {
      '0001_echoes': {
        async up(db) {
          await addPosition(db, db.schema.createTable('echoes'))
            .addColumn('echoed_at', 'timestamptz', (column) => column.notNull())
            .execute();
        },
      },
    },
  });
  return {
    async commit() {
      const row = { echoed_at: new Date() };
      await store.transaction((trx) => trx.insertInto('echoes').values(row).execute());
    },
    close: () => store.close(),
  };
}
