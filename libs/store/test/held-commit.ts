import { sql } from 'kysely';
import pg from 'pg';
import { expect, onTestFinished } from 'vitest';
import type { Store } from '../src/index.ts';
import { entry, type LedgerDatabase } from './ledger.ts';

const LOCK = "hashtextextended('held commit', 0)";

/** Controls the COMMITs that {@link holdCommits} blocks. */
export interface HeldCommit {
  /** A direct session on the server. */
  readonly admin: pg.Client;
  /** Resolves when a COMMIT has reached the server and is blocked. */
  arrived(): Promise<void>;
  /** Releases the blocked COMMITs. */
  release(): Promise<void>;
}

/** Blocks the COMMIT of every transaction that has inserted into `entry`, until `release` is called. */
export async function holdCommits(
  store: Store<LedgerDatabase>,
  url: string,
  schema: string,
): Promise<HeldCommit> {
  // A deferred constraint trigger, which runs at COMMIT and waits for a lock.
  await store.transaction(async (trx) => {
    await sql`create function held() returns trigger language plpgsql as ${sql.lit(
      `begin perform pg_advisory_xact_lock_shared(${LOCK}); return null; end`,
    )}`.execute(trx);
    await sql`create constraint trigger held after insert on entry
      deferrable initially deferred for each row execute function held()`.execute(trx);
  });
  const admin = new pg.Client({ connectionString: url });
  // Tests that kill the server end this session as well.
  admin.on('error', () => undefined);
  await admin.connect();
  onTestFinished(() => admin.end());
  await admin.query(`set search_path to ${schema}; select pg_advisory_lock(${LOCK})`);
  return {
    admin,
    arrived: async () => {
      const waiting = async () =>
        (
          await admin.query(
            `select 1 from pg_stat_activity
             where query = 'commit' and wait_event_type = 'Lock' and datname = current_database()`,
          )
        ).rowCount;
      await expect.poll(waiting).toBe(1);
    },
    release: async () => void (await admin.query(`select pg_advisory_unlock(${LOCK})`)),
  };
}

/**
 * Inserts the entry `id` and adds 1 to the balance; if the entry exists, does neither. If `attempt` is given, also
 * inserts the entry `attempt` in the same transaction.
 */
export async function writeOnce(
  store: Store<LedgerDatabase>,
  id: string,
  attempt?: string,
): Promise<void> {
  await store.transaction(async (trx) => {
    if (attempt !== undefined) await trx.insertInto('entry').values(entry(attempt)).execute();
    const { numInsertedOrUpdatedRows } = await trx
      .insertInto('entry')
      .values(entry(id))
      .onConflict((conflict) => conflict.column('id').doNothing())
      .executeTakeFirstOrThrow();
    if (numInsertedOrUpdatedRows === 0n) return;
    await trx
      .insertInto('account')
      .values({ name: 'all', balance: 1n })
      .onConflict((conflict) =>
        conflict.column('name').doUpdateSet({ balance: sql`account.balance + 1` }),
      )
      .execute();
  });
}

/** Returns the number of different `id`s that {@link writeOnce} has inserted. */
export async function balance(store: Store<LedgerDatabase>): Promise<bigint> {
  const row = await store.db.selectFrom('account').select('balance').executeTakeFirst();
  return row?.balance ?? 0n;
}
