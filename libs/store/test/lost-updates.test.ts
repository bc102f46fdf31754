import { endSessions, isPostgresAvailable, type PostgresLocation } from '@writ/testing/postgres';
import { seeded } from '@writ/testing/random';
import { describe, expect, it } from 'vitest';
import type { Store, TransactionOptions } from '../src/index.ts';
import { entry, type LedgerDatabase } from './ledger.ts';
import { openLedger, openLedgerAt } from './open-ledger.ts';

type Ledger = Store<LedgerDatabase>;

const ALL = {};
const TENANTS = ['acme', 'other', 'third'];
const RESOURCES = ['audit', 'starts'];
const RUNS = ['1', '2', '3', '4'];

/** Returns the accounts that a transaction with these options reads and then writes. */
function accountsOf({ tenant, run, runs = [], resource }: TransactionOptions): string[] {
  const named = run === undefined ? runs : [run, ...runs];
  const isAll = named.length === 0 && tenant === undefined && resource === undefined;
  const tenants = isAll ? TENANTS : tenant === undefined ? [] : [tenant];
  const resources = isAll ? RESOURCES : resource === undefined ? [] : [resource];
  return [
    ...new Set([
      ...named.map((each) => `${each.tenant}/${each.runId}`),
      ...tenants.flatMap((each) => RUNS.map((runId) => `${each}/${runId}`)),
      ...resources,
    ]),
  ];
}

function optionsOf(random: () => number): TransactionOptions {
  const pick = <T>(list: readonly T[]): T => list[Math.floor(random() * list.length)] as T;
  const kind = random();
  if (kind < 0.05) return ALL;
  if (kind < 0.15) return { tenant: pick(TENANTS) };
  if (kind < 0.2) return { resource: pick(RESOURCES) };
  const anyRun = () => ({ tenant: pick(TENANTS), runId: pick(RUNS) });
  if (kind < 0.3) return { runs: [anyRun(), anyRun(), anyRun()] };
  if (kind < 0.4) return { run: anyRun(), resource: pick(RESOURCES) };
  return { run: anyRun() };
}

/**
 * Adds one to each account and inserts an entry for it, so that after a lost update the balance differs from the number
 * of entries.
 */
async function addOne(store: Ledger, id: string, options: TransactionOptions): Promise<void> {
  await store.transaction(async (trx) => {
    for (const name of accountsOf(options)) {
      const found = await trx
        .selectFrom('account')
        .select('balance')
        .where('name', '=', name)
        .executeTakeFirstOrThrow();
      await trx
        .updateTable('account')
        .set({ balance: found.balance + 1n })
        .where('name', '=', name)
        .execute();
      await trx
        .insertInto('entry')
        .values(entry(`${name} ${id}`))
        .execute();
    }
  }, options);
}

describe.runIf(isPostgresAvailable())('transactions of three processes', () => {
  it('lose no update and do not deadlock with any mix of scopes, even when sessions are terminated (EM-3, SYS-5)', async () => {
    const { store, location } = await openLedger('PostgreSQL');
    const stores = [
      store,
      (await openLedgerAt(location)).store,
      (await openLedgerAt(location)).store,
    ];
    await store.transaction(async (trx) => {
      const rows = accountsOf(ALL).map((name) => ({ name, balance: 0n }));
      await trx.insertInto('account').values(rows).execute();
    });
    const reasons = new Set<string>();
    const client = async (name: number) => {
      const random = seeded(name);
      for (let count = 0; count < 25; count += 1) {
        const one = stores[Math.floor(random() * stores.length)] ?? store;
        await addOne(one, `${name}-${count}`, optionsOf(random)).catch((error) => {
          reasons.add(error.reason);
        });
        if (name === 0 && count % 8 === 4) await endSessions(location as PostgresLocation);
      }
    };
    await Promise.all(Array.from({ length: 12 }, (_, name) => client(name)));
    // A deadlock would be STORE_CONFLICT.
    for (const reason of reasons) {
      expect(reason).toMatch(/^STORE_(UNREACHABLE|COMMIT_FAILED|COMMIT_UNKNOWN)$/);
    }
    const accounts = await store.db.selectFrom('account').selectAll().orderBy('name').execute();
    const entries = await store.db.selectFrom('entry').select('id').execute();
    const counts = Map.groupBy(entries, ({ id }) => id.split(' ')[0]);
    expect(accounts.map(({ name, balance }) => [name, Number(balance)])).toEqual(
      accounts.map(({ name }) => [name, counts.get(name)?.length ?? 0]),
    );
    expect(entries.length).toBeGreaterThan(100);
  });
});
