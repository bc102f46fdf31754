import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Scope } from '@writ/kernel';
import { initialMigration, openStore, type StoreLocation } from '@writ/store';
import { isPostgresAvailable, postgresLocation } from '@writ/testing/postgres';
import fc from 'fast-check';
import type { Transaction } from 'kysely';
import { describe, expect, it, onTestFinished } from 'vitest';
import type { FreezeCause, FreezeOrder } from './order.ts';
import {
  type FreezesDatabase,
  freezesOver,
  freezesOverAny,
  freezesTable,
  insertFreeze,
  liftFreeze,
  MAX_CACHED_FREEZES,
} from './store.ts';

const AT = new Date('2026-01-01T00:00:00Z');
const PAYER = { tenant: 'acme', runId: 'run_1', instance: 'payer-1' };
const AGENTS = [
  PAYER,
  { ...PAYER, instance: 'payer-2' },
  { ...PAYER, runId: 'run_2' },
  { ...PAYER, tenant: 'other' },
];
const SCOPES: readonly Scope[] = [
  {},
  { tenant: 'acme' },
  { tenant: 'acme', runId: 'run_1' },
  PAYER,
];

/** Number of different orders in one round of the property. */
const ORDERS = 8;

type Trx = Transaction<FreezesDatabase>;

interface Step {
  readonly kind: 'freeze' | 'lift' | 'none';
  readonly order: number;
  readonly scope: Scope;
  readonly cause: FreezeCause;
  readonly other: boolean;
  readonly isRolledBack: boolean;
}

const step: fc.Arbitrary<Step> = fc.record({
  kind: fc.constantFrom('freeze', 'lift', 'lift', 'none'),
  order: fc.nat(ORDERS - 1),
  scope: fc.constantFrom(...SCOPES),
  cause: fc.constantFrom('halt', 'cancel', 'end'),
  other: fc.boolean(),
  isRolledBack: fc.boolean(),
});

function orderOf({ order, scope, cause }: Pick<Step, 'scope' | 'cause' | 'order'>): FreezeOrder {
  const orderedAt = new Date(AT.getTime() + order);
  return {
    orderId: `order_${order}`,
    scope,
    cause,
    reason: 'It pays too much.',
    orderedBy: 'ops',
    orderedAt,
    retention: null,
  };
}

/** Compares the result of `freezesOver` with a query that never uses cached rows. */
async function expectCurrent(trx: Trx): Promise<void> {
  for (const agent of AGENTS) {
    expect(await freezesOver(trx, agent)).toEqual(await freezesOverAny(trx, [agent]));
  }
}

async function applyStep(trx: Trx, each: Step, round: number): Promise<void> {
  const order = round * ORDERS + each.order;
  await expectCurrent(trx);
  if (each.kind === 'freeze') await insertFreeze(trx, orderOf({ ...each, order }), AT);
  if (each.kind === 'lift') await liftFreeze(trx, `order_${order}`, AT);
  await expectCurrent(trx);
  if (each.isRolledBack) throw new RolledBack();
}

class RolledBack extends Error {}

async function open(location: StoreLocation) {
  const store = await openStore<FreezesDatabase>({
    location,
    migrations: initialMigration([freezesTable]),
    service: 'freezes',
  });
  onTestFinished(() => store.close());
  return store;
}

async function locationIn(place: string): Promise<StoreLocation> {
  if (place === 'PostgreSQL') return await postgresLocation();
  const folder = mkdtempSync(join(tmpdir(), 'writ-freezes-'));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  return { dialect: 'sqlite', file: join(folder, 'freezes.db') };
}

const PLACES = ['a file', ...(isPostgresAvailable() ? ['PostgreSQL'] : [])];

describe.each(PLACES)('freezes that cover an agent, stored in %s (EM-3, SV-9)', (place) => {
  it('equal the stored orders, despite rollbacks and concurrent writers', async () => {
    const location = await locationIn(place);
    const [store, other] = [await open(location), await open(location)];
    let round = 0;
    await fc.assert(
      fc.asyncProperty(fc.array(step, { maxLength: 12 }), async (steps) => {
        for (const each of steps) {
          const writer = each.other ? other : store;
          await writer
            .transaction((trx) => applyStep(trx, each, round))
            .catch((error: unknown) => {
              if (!(error instanceof RolledBack)) throw error;
            });
        }
        await store.transaction(async (trx) => {
          await expectCurrent(trx);
          for (let order = 0; order < ORDERS; order += 1) {
            await liftFreeze(trx, `order_${round * ORDERS + order}`, AT);
          }
          await expectCurrent(trx);
        });
        round += 1;
      }),
      { numRuns: place === 'PostgreSQL' ? 20 : 100 },
    );
  });

  it('are complete when the table has more orders than the cache limit', async () => {
    const store = await open(await locationIn(place));
    await store.transaction(async (trx) => {
      for (let order = 0; order < MAX_CACHED_FREEZES; order += 1) {
        await insertFreeze(
          trx,
          orderOf({ order, scope: { tenant: 'other' }, cause: 'cancel' }),
          AT,
        );
      }
      await expectCurrent(trx);
      await insertFreeze(trx, orderOf({ order: 1_000, scope: PAYER, cause: 'halt' }), AT);
      await expectCurrent(trx);
    });
    await store.transaction(async (trx) => {
      expect(await freezesOver(trx, PAYER)).toHaveLength(1);
      expect(await liftFreeze(trx, 'order_1000', AT)).toBe(true);
      expect(await freezesOver(trx, PAYER)).toEqual([]);
      await expectCurrent(trx);
    });
  });
});
