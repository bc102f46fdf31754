import { join } from 'node:path';
import { addPosition, openStore } from '@writ/store';

interface FloorDatabase {
  rows: { written_at: Date };
}

/**
 * Commits of a step, through libs/store and durable as those of the services; each inserts one row with
 * one column into a table with an index on its key. Every service has a store of its own.
 */
export interface FloorStores {
  readonly meter: Commit;
  readonly supervisor: Commit;
  readonly gateway: Commit;
  readonly worker: Commit;
}

/** Resolves when the row is durable. */
export type Commit = () => Promise<void>;

/** Opens the stores of both floors in `folder`. */
export async function openFloorStores(folder: string): Promise<FloorStores> {
  const open = async (service: keyof FloorStores): Promise<Commit> => {
    const store = await openStore<FloorDatabase>({
      location: { dialect: 'sqlite', file: join(folder, `floor-${service}.db`) },
      service: 'floor',
      migrations: {
        '0001_rows': {
          async up(db) {
            await addPosition(db, db.schema.createTable('rows'))
              .addColumn('written_at', 'timestamptz', (column) => column.notNull())
              .execute();
          },
        },
      },
    });
    return async () => {
      const row = { written_at: new Date() };
      await store.transaction((trx) => trx.insertInto('rows').values(row).execute());
    };
  };
  return {
    meter: await open('meter'),
    supervisor: await open('supervisor'),
    gateway: await open('gateway'),
    worker: await open('worker'),
  };
}
