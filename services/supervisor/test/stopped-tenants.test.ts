import { expect, it, onTestFinished } from 'vitest';
import { appendAudit } from '../src/store/audit/append-audit.ts';
import { linkAudit } from '../src/store/audit/link-audit.ts';
import { stoppedTenants } from '../src/store/halt/runs-in-scope.ts';
import { insertRun } from '../src/store/run/runs.ts';
import { openSupervisorStore } from '../src/store/supervisor-store.ts';
import { runRow } from './run-row.ts';

const BEFORE = new Date('2026-01-01T00:00:00Z');
const HALTED = new Date('2026-01-01T01:00:00Z');

it('stoppedTenants returns tenants with runs active at the halt, before and after linking (SV-8, SV-9)', async () => {
  const store = await openSupervisorStore({ dialect: 'sqlite', file: ':memory:' }, () => undefined);
  onTestFinished(() => store.close());
  await store.transaction(async (trx) => {
    const ends = { running: null, ended: HALTED, 'ended-before': BEFORE } as const;
    for (const [tenant, at] of Object.entries(ends)) {
      const ended = at === null ? {} : { ended_at: at, changed_at: at };
      await insertRun(trx, { ...runRow(tenant, 'run-1'), ...ended });
      await appendAudit(trx, { tenant, kind: 'run_started', runId: 'run-1', facts: {} }, BEFORE);
    }
  });
  expect(await stoppedTenants(store.db, HALTED)).toEqual(['ended', 'running']);
  await store.transaction((trx) => linkAudit(trx, 100, HALTED));
  expect(await stoppedTenants(store.db, HALTED)).toEqual(['ended', 'running']);
});
