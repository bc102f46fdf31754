import { column, type DatabaseOf, initialMigration, openStore, table } from '@writ/store';

const echoes = table('echoes', {
  columns: { position: column.position(), echoed_at: column.timestamp() },
});

/** The store of an echo server. */
export interface EchoStore {
  /** Inserts a row and waits until it is durable. */
  commit(): Promise<void>;
  close(): Promise<void>;
}

/** Opens the store of an echo server in a file or in memory. */
export async function openEchoStore(file = ':memory:'): Promise<EchoStore> {
  const store = await openStore<DatabaseOf<readonly [typeof echoes]>>({
    location: { dialect: 'sqlite', file },
    service: 'echo',
    migrations: initialMigration([echoes]),
  });
  return {
    async commit() {
      const row = { echoed_at: new Date() };
      await store.transaction((trx) => trx.insertInto('echoes').values(row).execute());
    },
    close: () => store.close(),
  };
}
