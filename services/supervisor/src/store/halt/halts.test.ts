import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { StatementSync } from 'node:sqlite';
import type { Scope } from '@writ/kernel';
import { expect, it, onTestFinished, vi } from 'vitest';
import { openSupervisorStore, type SupervisorStore } from '../supervisor-store.ts';
import { haltCovering, insertHalt, MAX_CACHED_HALTS, newHalt, saveHalt } from './halts.ts';

const AT = new Date('2026-01-01T00:00:00Z');
const PAYER = { tenant: 'acme', runId: 'run_1', instance: 'payer-1' };
const OTHER = { ...PAYER, instance: 'payer-2' };

async function openStore(): Promise<SupervisorStore> {
  const folder = mkdtempSync(join(tmpdir(), 'writ-halts-'));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  const location = { dialect: 'sqlite', file: join(folder, 'supervisor.db') } as const;
  const store = await openSupervisorStore(location, () => undefined);
  onTestFinished(() => store.close());
  return store;
}

function halt(number: number, scope: Scope) {
  const ordered = { orderedBy: 'anna', orderedFor: 'acme', at: AT };
  return newHalt({ haltId: `hlt_${number}`, scope, reason: 'Stop.', endRuns: false, ...ordered });
}

it('reads only the halts that cover an agent when more halts are in force than the cache can hold (SV-9)', async () => {
  const store = await openStore();
  await store.transaction(async (trx) => {
    for (let number = 0; number < MAX_CACHED_HALTS; number += 1) {
      await insertHalt(trx, halt(number, { tenant: 'acme', runId: `other_${number}` }));
    }
    await insertHalt(trx, halt(MAX_CACHED_HALTS, PAYER));
  });
  const all = vi.spyOn(StatementSync.prototype, 'all');
  const rowsRead = async (agent: typeof PAYER, haltId: string | undefined): Promise<number> => {
    all.mockClear();
    const found = await store.transaction((trx) => haltCovering(trx, agent));
    expect(found?.haltId).toBe(haltId);
    return all.mock.results.reduce((sum, { value }) => sum + value.length, 0);
  };
  const last = `hlt_${MAX_CACHED_HALTS}`;
  expect(await rowsRead(PAYER, last)).toBeGreaterThan(MAX_CACHED_HALTS);
  // The halts of the first agent are cached; for another agent, only the halts that cover it are read.
  expect(await rowsRead(PAYER, last)).toBeLessThan(10);
  expect(await rowsRead(OTHER, undefined)).toBeLessThan(10);
  await store.transaction((trx) => saveHalt(trx, last, { lifted_at: AT }));
  await rowsRead(PAYER, undefined);
  expect(await rowsRead(OTHER, undefined)).toBeLessThan(10);
});
