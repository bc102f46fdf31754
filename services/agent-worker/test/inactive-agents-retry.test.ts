import { systemClock, UnavailableError } from '@writ/kernel';
import { createTelemetry } from '@writ/telemetry';
import type { Insertable } from 'kysely';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import type { SlotStatus } from '../src/domain/agent/slot.ts';
import { InactiveAgents } from '../src/runtime/slots/inactive-agents.ts';
import type { AgentsTable } from '../src/store/schema.ts';
import { openWorkerStore, type WorkerStore } from '../src/store/worker-store.ts';
import { AGENT, RUN, TENANT } from './delivery.ts';
import { inactiveAgentRow } from './inactive-agent-row.ts';

const KEY = { tenant: TENANT, runId: RUN, instance: AGENT.instance };
const TOKENS = JSON.stringify({ spawnBudget: 'token', expiresAt: Date.now() + 600_000 });

/** The expected state change after a slot update. */
const MOVES: readonly {
  readonly from: Partial<Insertable<AgentsTable>>;
  readonly state: SlotStatus;
  readonly to: string;
}[] = [
  { from: { state: 'SUSPENDED', waiting_for: '["answer"]' }, state: 'paused', to: 'PARKED' },
  { from: { state: 'PARKED' }, state: 'active', to: 'RUNNING' },
];

describe('an inactive agent whose slot changed while the store failed', () => {
  let store: WorkerStore;
  beforeEach(async () => {
    store = await openWorkerStore({ dialect: 'sqlite', file: ':memory:' });
  });
  afterEach(() => store.close());

  it.each(MOVES)('is polled again, and becomes $to (SB-4, SB-8)', async (move) => {
    const { from, state, to } = move;
    await store.transaction((trx) =>
      trx
        .insertInto('agents')
        .values(inactiveAgentRow({ ...from, credentials: TOKENS }))
        .execute(),
    );
    const inactive = new InactiveAgents({
      store,
      clock: systemClock,
      log: createTelemetry({ service: 'agent-worker', logLevel: 'silent' }).log,
      settings: { tenants: [], waitReportMs: 3_600_000 },
      onRunnable: () => undefined,
    });
    const down = new UnavailableError('STORE_COMMIT_FAILED', 'The disk is full.');
    vi.spyOn(store, 'transaction').mockRejectedValueOnce(down);
    const answer = async (): Promise<void> => {
      const [entry] = await inactive.entries(false);
      await entry?.answered({ state, grant: '', grantExpiresAt: 0 });
    };
    inactive.note(KEY);
    await expect(answer()).rejects.toBe(down);
    expect(inactive.isBehind).toBe(true);
    await answer();
    expect(inactive.isBehind).toBe(false);
    const row = await store.db.selectFrom('agents').select('state').executeTakeFirstOrThrow();
    expect(row.state).toBe(to);
  });
});
