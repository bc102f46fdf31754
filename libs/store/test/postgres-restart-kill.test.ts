import { setTimeout as wait } from 'node:timers/promises';
import { isWritError } from '@writ/kernel';
import { freePorts } from '@writ/testing/distributed';
import {
  type DedicatedPostgres,
  isPostgresAvailable,
  startDedicatedPostgres,
} from '@writ/testing/postgres';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { Store } from '../src/index.ts';
import { balance, writeOnce } from './held-commit.ts';
import { entry, type LedgerDatabase } from './ledger.ts';
import { entryIds, openLedgerAt } from './open-ledger.ts';

const WRITERS = 12;
const STOPS = 4;

/** The outcome of every attempt. */
class Attempts {
  readonly acknowledged: string[] = [];
  /** Attempts that were reported as rolled back. */
  readonly undone: string[] = [];
  readonly reasons = new Set<string>();
  #n = 0;

  /** Retries a write until it is acknowledged; each attempt also inserts an entry for itself. */
  async writeUntilDone(store: Store<LedgerDatabase>, request: string): Promise<void> {
    for (;;) {
      this.#n += 1;
      const attempt = `attempt ${this.#n}`;
      try {
        await writeOnce(store, request, attempt);
        this.acknowledged.push(request, attempt);
        return;
      } catch (error) {
        if (!isWritError(error)) throw error;
        expect(error.kind).toBe('unavailable');
        this.reasons.add(error.reason);
        if (error.reason !== 'STORE_COMMIT_UNKNOWN') this.undone.push(attempt);
        await wait(20);
      }
    }
  }
}

describe.skipIf(!isPostgresAvailable())('a store whose PostgreSQL server restarts', () => {
  let postgres: DedicatedPostgres;

  beforeAll(async () => {
    const [port = 0] = await freePorts(1);
    postgres = await startDedicatedPostgres(port);
  }, 120_000);
  afterAll(() => postgres?.stop());

  it.each(['killed', 'fast'] as const)(
    'stores each request once, loses no acknowledged write and recovers (server stopped: %s; SYS-4, RT-3)',
    async (how) => {
      const location = { dialect: 'postgres', url: postgres.url(), schema: how } as const;
      const { store: first } = await openLedgerAt(location);
      const { store: second } = await openLedgerAt(location);
      const attempts = new Attempts();
      let stopped = false;
      const requests: string[] = [];
      const writer = async (number: number): Promise<void> => {
        const store = number % 2 === 0 ? first : second;
        for (let n = 0; !stopped; n += 1) {
          const request = `request ${number}-${n}`;
          requests.push(request);
          await attempts.writeUntilDone(store, request);
        }
      };
      const writers = Promise.all(Array.from({ length: WRITERS }, (_, number) => writer(number)));
      for (let n = 0; n < STOPS; n += 1) {
        const enough = attempts.acknowledged.length + 100;
        await expect.poll(() => attempts.acknowledged.length).toBeGreaterThan(enough);
        const failed = attempts.undone.length;
        await postgres.kill(how);
        await expect.poll(() => attempts.undone.length).toBeGreaterThan(failed);
        await postgres.start();
      }
      const enough = attempts.acknowledged.length + 100;
      await expect.poll(() => attempts.acknowledged.length).toBeGreaterThan(enough);
      stopped = true;
      await writers;
      const stored = new Set(await entryIds(second));
      expect(attempts.acknowledged.filter((id) => !stored.has(id))).toEqual([]);
      expect(attempts.undone.filter((id) => stored.has(id))).toEqual([]);
      expect(await balance(first)).toBe(BigInt(requests.length));
    },
  );

  it('can be read again after a reconnect, and reports STORE_UNREACHABLE until then (SYS-4)', async () => {
    const location = { dialect: 'postgres', url: postgres.url(), schema: 'readers' } as const;
    const { store } = await openLedgerAt(location);
    await store.transaction((trx) => trx.insertInto('entry').values(entry('a')).execute());
    const read = () => Promise.all(Array.from({ length: 8 }, () => entryIds(store)));
    await read();
    await postgres.kill();
    await expect(entryIds(store)).rejects.toMatchObject({ reason: 'STORE_UNREACHABLE' });
    await postgres.start();
    expect(await read()).toEqual(Array.from({ length: 8 }, () => ['a']));
  });
});
