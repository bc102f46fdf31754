import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { isWritError } from '@writ/kernel';
import type { StoreLocation } from '@writ/store';
import { isPostgresAvailable, postgresLocation } from '@writ/testing/postgres';
import fc from 'fast-check';
import { expect, it, onTestFinished } from 'vitest';
import { bookingTransaction } from '../src/app/tabs/booking-transaction.ts';
import type { MeterContext } from '../src/context.ts';
import { NO_USAGE } from '../src/domain/ledger/spending.ts';
import { EXECUTION_METER_DEFAULTS } from '../src/index.ts';
import { forgetLevels, readLevels, setLevelCaps } from '../src/store/balances.ts';
import { book } from '../src/store/book.ts';
import { countFailure, failuresOf, forgetFailures, openFailures } from '../src/store/failures.ts';
import {
  type MeterStore,
  type MeterTransaction,
  openMeterStore,
} from '../src/store/meter-store.ts';
import { openLevels } from '../src/store/open-levels.ts';
import type { SliceAccess } from '../src/store/slices/slice-access.ts';
import { closeTab, findTab, insertTab, raiseEpoch, type StoredTab } from '../src/store/tabs.ts';

const AT = new Date('2026-01-01T12:00:00Z');
const DAY = '2026-01-01';
const NO_CAPS = { day: {}, month: {} };
const INSTANCES = ['root', 'child'] as const;

type Kind = 'open' | 'set caps' | 'raise epoch' | 'reserve' | 'settle' | 'fail' | 'close' | 'none';

interface Step {
  readonly kind: Kind;
  readonly instance: (typeof INSTANCES)[number];
  readonly amount: bigint;
  readonly hasCaps: boolean;
  readonly other: boolean;
  readonly isRolledBack: boolean;
}

const step: fc.Arbitrary<Step> = fc.record({
  kind: fc.constantFrom<Kind>(
    'open',
    'open',
    'raise epoch',
    'set caps',
    'reserve',
    'settle',
    'fail',
    'close',
    'none',
  ),
  instance: fc.constantFrom(...INSTANCES),
  amount: fc.bigInt({ min: 1n, max: 9n }),
  hasCaps: fc.boolean(),
  other: fc.boolean(),
  isRolledBack: fc.constantFrom(false, false, true),
});

const config = EXECUTION_METER_DEFAULTS as unknown as MeterContext['config'];

class RolledBack extends Error {}

function tabOf(instance: string, runId: string): StoredTab {
  return {
    tenant: 'acme',
    runId,
    instance,
    agentName: 'support',
    parent: undefined,
    sessionId: 'session-1',
    state: 'open',
    models: ['hello'],
    priority: 50,
    deadline: undefined,
    near: { reserveTokens: 0n, reserveCostPpm: 0n },
    retention: 'none',
    requestId: 'open-1',
    requestDigest: 'd',
    eventKey: '',
    epoch: undefined,
    openedAt: AT,
    closedAt: undefined,
  };
}

/** Executes a step with the store functions that the RPCs of the meter call. */
async function take(
  trx: MeterTransaction,
  { kind, amount, hasCaps, ...step }: Step,
  { runId, access }: { readonly runId: string; readonly access: SliceAccess },
) {
  const given = tabOf(step.instance, runId);
  const key = { ...given, day: DAY };
  if (kind === 'set caps') {
    const caps = amount > 4n ? { tokens: amount * 100n } : undefined;
    const { tenant, sessionId } = given;
    const scope = hasCaps
      ? ({ level: 'tenant_day', sessionId: '' } as const)
      : ({ level: 'session', sessionId } as const);
    await setLevelCaps(trx, { tenant, runId: '', ...scope, caps, setBy: 'anna' });
    return;
  }
  const tab = await findTab(trx, given);
  if (tab === undefined) {
    if (kind !== 'open') return;
    await insertTab(trx, given);
    const caps = hasCaps ? { tokens: amount * 100n } : undefined;
    const before = await readLevels(trx, key, NO_CAPS);
    const opened = { agent: caps ?? {}, run: caps, session: caps };
    await openLevels(trx, key, { opened, access, before });
    openFailures(trx, given);
    return;
  }
  const id = { kind: 'reserve', callId: 'op-1', attempt: 0 } as const;
  const booking = { tab, tenantCaps: NO_CAPS, id, at: AT, access };
  const usage = { ...NO_USAGE, input: amount };
  const hold = { usage, cost: 0n, turns: 1n };
  const spent = { ...hold, estimated: false, failed: false };
  if (kind === 'raise epoch') await raiseEpoch(trx, tab, amount);
  if (kind === 'reserve') {
    await book(trx, { ...booking, events: [{ type: 'reserve', kind: 'reserve', hold }] });
  }
  if (kind === 'settle') await book(trx, { ...booking, events: [{ type: 'settle', spent }] });
  if (kind === 'fail') await countFailure(trx, tab, 'llm_empty', `op-${amount}`);
  if (kind === 'close') {
    forgetFailures(trx, tab);
    forgetLevels(trx, key);
    await closeTab(trx, tab, AT);
  }
}

async function rowsOf(db: MeterTransaction | MeterStore['db'], runId: string) {
  const rows: unknown[] = [];
  for (const instance of INSTANCES) {
    const tab = tabOf(instance, runId);
    rows.push(await findTab(db, tab), await failuresOf(db, tab));
    rows.push(await readLevels(db, { ...tab, day: DAY }, NO_CAPS));
  }
  return rows;
}

async function open(location: StoreLocation): Promise<MeterStore> {
  const store = await openMeterStore(location, () => undefined);
  onTestFinished(() => store.close());
  return store;
}

async function locationIn(place: string): Promise<StoreLocation> {
  if (place === 'PostgreSQL') return await postgresLocation();
  const folder = mkdtempSync(join(tmpdir(), 'writ-meter-rows-'));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  return { dialect: 'sqlite', file: join(folder, 'meter.db') };
}

/** Store locations and numbers of slices. */
const PLACES: readonly (readonly [string, number])[] = [
  ['a file', 1],
  ['a file', 4],
  ...(isPostgresAvailable() ? [['PostgreSQL', 64] as const] : []),
];

it.each(PLACES)(
  'caches tabs, levels and failures exactly as stored in %s with %d slices (EM-3)',
  async (place, slices) => {
    const location = await locationIn(place);
    const [store, other] = [await open(location), await open(location)];
    let round = 0;
    await fc.assert(
      fc.asyncProperty(fc.array(step, { minLength: 1, maxLength: 14 }), async (steps) => {
        round += 1;
        const runId = `run-${round}`;
        for (const each of steps) {
          const context = { store: each.other ? other : store, slices, config };
          const taken = bookingTransaction(
            context,
            { tenant: 'acme', runId },
            async (trx, access) => {
              await take(trx, each, { runId, access });
              if (each.isRolledBack) throw new RolledBack();
            },
          );
          await taken.catch((error: unknown) => {
            // The reducer rejects some steps.
            if (!(error instanceof RolledBack) && !isWritError(error)) throw error;
          });
          // A read outside of a transaction bypasses the cache and returns the stored rows.
          const stored = await rowsOf(store.db, runId);
          expect(await store.transaction((trx) => rowsOf(trx, runId))).toEqual(stored);
        }
      }),
      { numRuns: place === 'PostgreSQL' ? 10 : 100 },
    );
  },
);
