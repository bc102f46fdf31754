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

const ASLEEP = { state: 'SUSPENDED', waiting_for: '["answer"]' } as const;

/** The expected state change after a slot update. */
const MOVES: readonly {
  readonly from: Partial<Insertable<AgentsTable>>;
  readonly state: SlotStatus;
  readonly to: string;
}[] = [
  { from: ASLEEP, state: 'paused', to: 'PARKED' },
  { from: { state: 'PARKED' }, state: 'active', to: 'RUNNING' },
];

let store: WorkerStore;
beforeEach(async () => {
  store = await openWorkerStore({ dialect: 'sqlite', file: ':memory:' });
});
afterEach(() => store.close());

/** Inserts the agent with current tokens. */
async function insert(changes: Partial<Insertable<AgentsTable>>): Promise<void> {
  await store.transaction((trx) =>
    trx
      .insertInto('agents')
      .values(inactiveAgentRow({ ...changes, credentials: TOKENS }))
      .execute(),
  );
}

function inactiveAgents(used = store): InactiveAgents {
  return new InactiveAgents({
    store: used,
    clock: systemClock,
    log: createTelemetry({ service: 'agent-worker', logLevel: 'silent' }).log,
    settings: { tenants: [], waitReportMs: 3_600_000 },
    onRunnable: () => undefined,
  });
}

describe('an inactive agent whose slot changed while the store failed', () => {
  it.each(MOVES)('is polled again, and becomes $to (SB-4, SB-8)', async (move) => {
    const { from, state, to } = move;
    await insert(from);
    const inactive = inactiveAgents();
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

describe('an agent that is suspended again', () => {
  /** Suspends the agent again, under its next lease. */
  async function suspendAgain(): Promise<void> {
    await store.transaction(async (trx) => {
      await trx
        .updateTable('agents')
        .set({ ...ASLEEP, epoch: 2n })
        .execute();
    });
  }

  /** The store of this test; the first read ends only after `during`. */
  function delayedRead(during: () => Promise<void>): WorkerStore {
    let reads = 0;
    const db = store.db.withPlugin({
      transformQuery: ({ node }) => node,
      async transformResult({ result }) {
        reads += 1;
        if (reads === 1) await during();
        return result;
      },
    });
    return new Proxy(store, {
      get: (target, name) => (name === 'db' ? db : Reflect.get(target, name, target)),
    });
  }

  it('is reported even if it was read as running before (SB-4, SB-8)', async () => {
    await insert({ state: 'RUNNING', waiting_for: '[]' });
    const inactive: InactiveAgents = inactiveAgents(
      delayedRead(async () => {
        await suspendAgain();
        inactive.note(KEY);
      }),
    );
    inactive.note(KEY);
    expect(await inactive.entries(false)).toMatchObject([
      { renewal: { epoch: 2n, intent: 'suspend' } },
    ]);
  });

  it('is reported again when its earlier report is answered late (SB-4, SB-8)', async () => {
    await insert(ASLEEP);
    const inactive = inactiveAgents();
    const answer = { state: 'active', grant: '', grantExpiresAt: 0 } as const;
    inactive.note(KEY);
    const [earlier] = await inactive.entries(false);
    await suspendAgain();
    inactive.note(KEY);
    await earlier?.answered(answer);
    expect(inactive.isBehind).toBe(true);
    const [later] = await inactive.entries(false);
    expect(later?.renewal).toMatchObject({ epoch: 2n, intent: 'suspend' });
    await later?.answered(answer);
    expect(inactive.isBehind).toBe(false);
  });
});
