// Started and killed by crash.test.ts: commits facts with their messages continuously and
// prints an id after its transaction has resolved.
import { writeSync } from 'node:fs';
import { appendOutbox, openStore } from '../src/index.ts';
import { entry, type LedgerDatabase, ledgerMigrations } from './ledger.ts';

const [file = '', generation = ''] = process.argv.slice(2);
const store = await openStore<LedgerDatabase>({
  location: { dialect: 'sqlite', file },
  migrations: ledgerMigrations,
  service: 'ledger',
});

async function commitForEver(writer: number): Promise<void> {
  for (let n = 0; ; n += 1) {
    const id = `${generation}-${writer}-${n}`;
    await store.transaction(async (trx) => {
      await trx.insertInto('entry').values(entry(id)).execute();
      await appendOutbox(trx, { eventId: id, subject: 's', payload: new Uint8Array() }, new Date());
    });
    writeSync(1, `${id}\n`);
  }
}

await Promise.all([0, 1, 2, 3].map(commitForEver));
