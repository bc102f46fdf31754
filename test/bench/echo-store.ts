import { addPosition, openStore } from '@writ/store';

interface EchoDatabase {
  echoes: { echoed_at: Date };
}

/** What a server that does nothing writes, when it is asked to. */
export interface EchoStore {
  /** Inserts a row of one column, and waits until that is durable. */
  commit(): Promise<void>;
  close(): Promise<void>;
}

/** Opens the store of an echo server, in a file or in memory. */
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
