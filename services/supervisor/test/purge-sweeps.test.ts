import { HistoryRetention, ManualClock } from '@writ/kernel';
import { expect, it, onTestFinished } from 'vitest';
import { loadAgents } from '../src/app/definitions/agents-file.ts';
import { RunPurger } from '../src/app/run/purge-runs.ts';
import type { SupervisorContext } from '../src/context.ts';
import { insertAgent } from '../src/store/agent/agents.ts';
import { newAgentRow } from '../src/store/agent/new-agent.ts';
import { insertRun } from '../src/store/run/runs.ts';
import { openSupervisorStore, type SupervisorStore } from '../src/store/supervisor-store.ts';
import { exampleFile } from './refund-tools.ts';
import { runRow } from './run-row.ts';

const TENANT = 'acme';
const AT = new Date('2026-01-01T00:00:00Z');
/** Runs that one sweep reads. */
const RUNS_AT_ONCE = 20;

const clock = new ManualClock(new Date(AT.getTime() + 3_600_000));

async function openStore(): Promise<SupervisorStore> {
  const store = await openSupervisorStore({ dialect: 'sqlite', file: ':memory:' }, () => undefined);
  onTestFinished(() => store.close());
  return store;
}

function purgerOf(
  store: Pick<SupervisorStore, 'db' | 'transaction'>,
  logged: unknown[] = [],
): RunPurger {
  const log = { error: ({ run_id }: { run_id: string }) => void logged.push(run_id) };
  const parts = { store, clock, config: { purgeAfterMs: 0 }, telemetry: { log } };
  return new RunPurger(parts as unknown as SupervisorContext);
}

interface EndedRun {
  readonly runId: string;
  readonly retention: HistoryRetention;
  readonly result?: string;
  readonly endedAt?: Date;
}

/** Inserts an ended run with two agents; the content of `child` is to be deleted after the end of the run. */
async function insertEnded(
  store: SupervisorStore,
  { runId, retention, result, endedAt = AT }: EndedRun,
): Promise<void> {
  const { agents } = loadAgents(exampleFile('agents.yaml'));
  const manifest = agents.get('refund-worker');
  if (manifest === undefined) throw new Error('The agent does not exist.');
  const ended = { state: 'COMPLETED', ended_at: endedAt } as const;
  const run = { ...runRow(TENANT, runId), ...ended, retention, result: result ?? null };
  await store.transaction(async (trx) => {
    await insertRun(trx, run);
    for (const instance of ['agent', 'child']) {
      const row = newAgentRow({ tenant: TENANT, runId, instance, manifest, models: [] });
      const purge_pending = instance === 'child' ? 1 : null;
      await insertAgent(trx, { ...row, ...ended, purge_pending });
    }
  });
}

it.each([HistoryRetention.RUN, HistoryRetention.PERMANENT])(
  'purges later runs when as many runs as a sweep reads cannot be purged, and retries these (SUP-4): %s',
  async (retention) => {
    const store = await openStore();
    const ids = Array.from({ length: RUNS_AT_ONCE + 2 }, (_, n) => `run-${10 + n}`);
    const broken = ids.slice(0, RUNS_AT_ONCE);
    for (const [n, runId] of ids.entries()) {
      // All broken runs ended at the same time.
      const endedAt = broken.includes(runId) ? AT : new Date(AT.getTime() + n);
      const isBroken = broken.includes(runId);
      await insertEnded(store, { runId, retention, endedAt, ...(isBroken && { result: '{' }) });
    }
    const purged = async () => {
      const rows = await store.db
        .selectFrom('agents')
        .select('run_id')
        .where('instance', '=', 'child')
        .where('purge_pending', 'is', null)
        .orderBy('run_id')
        .execute();
      return rows.map(({ run_id }) => run_id);
    };
    const logged: unknown[] = [];
    const purger = purgerOf(store, logged);
    await purger.sweep();
    expect(await purged()).toEqual([]);
    await purger.sweep();
    expect(logged).toEqual(broken);
    expect(await purged()).toEqual(ids.slice(RUNS_AT_ONCE));
    await store.transaction((trx) => trx.updateTable('runs').set({ result: null }).execute());
    await purger.sweep();
    expect(await purged()).toEqual(ids);
  },
);
