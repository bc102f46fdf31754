import { HistoryRetention, ManualClock, sha256Hex } from '@writ/kernel';
import { testStore } from '@writ/testing/postgres';
import { expect, it, onTestFinished } from 'vitest';
import { loadAgents } from '../src/app/definitions/agents-file.ts';
import { RunPurger } from '../src/app/run/purge-runs.ts';
import type { SupervisorContext } from '../src/context.ts';
import { insertAgent } from '../src/store/agent/agents.ts';
import { newAgentRow } from '../src/store/agent/new-agent.ts';
import { type DecisionRow, insertDecision } from '../src/store/review/decisions.ts';
import { insertRun } from '../src/store/run/runs.ts';
import { openSupervisorStore, type SupervisorStore } from '../src/store/supervisor-store.ts';
import { exampleFile } from './refund-tools.ts';
import { runRow } from './run-row.ts';

const TENANT = 'acme';
const AT = new Date('2026-01-01T00:00:00Z');
/** Runs that one sweep reads. */
const RUNS_AT_ONCE = 20;
/** Time after which a run that cannot be purged is retried. */
const RETRY_MS = 60_000;
/** Time after which the sweeps start again at the first run, even if more runs follow. */
const PASS_MS = 600_000;
/** Decisions whose content one transaction deletes. */
const CALLS_AT_ONCE = 64;

const clock = new ManualClock(new Date(AT.getTime() + 3_600_000));

async function openStore(): Promise<SupervisorStore> {
  const location = testStore({ dialect: 'sqlite', file: ':memory:' });
  const store = await openSupervisorStore(location, () => undefined);
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

/** A decision on a call of an agent, whose action has content. */
function decisionRow(runId: string, instance: string, sequence: number): DecisionRow {
  const callId = `op-${sequence}`;
  const action = JSON.stringify({
    kind: 'tool',
    name: 'look',
    args: { content: 'Action-content' },
  });
  return {
    tenant: TENANT,
    run_id: runId,
    instance,
    call_id: callId,
    decision_id: `${runId}-${instance}-${callId}`,
    sequence,
    proposal_digest: '',
    model_call_id: '',
    step: sequence,
    composed: false,
    partial: false,
    verdict: 'approve',
    reason: 'fine',
    rule_id: 'rule',
    risk: 0,
    policy_version: '',
    raw_text: 'Text-content',
    action,
    revised_action: null,
    executed_action: action,
    executed_from: 'original',
    has_effect: false,
    approval_id: null,
    stop_reason: null,
    phase: null,
    settled: true,
    run_ended: false,
    definition_digest: null,
    args_sha256: sha256Hex(action),
    writ_count: 1,
    last_writ_id: null,
    last_writ_expires_at: null,
    facts_before: null,
    facts_after: null,
    decided_at: AT,
    latency_us: 1,
  };
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
    clock.advance(RETRY_MS);
    await purger.sweep();
    expect(await purged()).toEqual(ids);
  },
);

it.each([HistoryRetention.RUN, HistoryRetention.PERMANENT])(
  'retries a run that cannot be purged only after a minute (SUP-4, CO-2): %s',
  async (retention) => {
    const store = await openStore();
    await insertEnded(store, { runId: 'run-1', retention, result: '{' });
    const logged: unknown[] = [];
    const purger = purgerOf(store, logged);
    await purger.sweep();
    clock.advance(RETRY_MS - 1);
    await purger.sweep();
    expect(logged).toEqual(['run-1']);
    clock.advance(1);
    await purger.sweep();
    expect(logged).toEqual(['run-1', 'run-1']);
  },
);

it.each([HistoryRetention.RUN, HistoryRetention.PERMANENT])(
  'retries a run that cannot be purged although every sweep finds more runs than it reads (SUP-4): %s',
  async (retention) => {
    const store = await openStore();
    let ended = 0;
    const endMore = async (count: number) => {
      for (const last = ended + count; ended < last; ended += 1) {
        const endedAt = new Date(AT.getTime() + ended);
        const isBroken = ended === 0;
        const runId = `run-${100 + ended}`;
        await insertEnded(store, { runId, retention, endedAt, ...(isBroken && { result: '{' }) });
      }
    };
    const isPurged = async () => {
      const { purge_pending } = await store.db
        .selectFrom('agents')
        .select('purge_pending')
        .where('run_id', '=', 'run-100')
        .where('instance', '=', 'child')
        .executeTakeFirstOrThrow();
      return purge_pending === null;
    };
    const purger = purgerOf(store);
    await endMore(2 * RUNS_AT_ONCE);
    await purger.sweep();
    await store.transaction((trx) => trx.updateTable('runs').set({ result: null }).execute());
    await endMore(RUNS_AT_ONCE);
    await purger.sweep();
    clock.advance(PASS_MS);
    await endMore(RUNS_AT_ONCE);
    await purger.sweep();
    expect(await isPurged()).toBe(false);
    await purger.sweep();
    expect(await isPurged()).toBe(true);
  },
);

const MANY_DECISIONS = [
  ['of a run', HistoryRetention.RUN, 0],
  ['of an agent', HistoryRetention.PERMANENT, 300],
] as const;

/** Inserts an ended run with 300 decisions of each of its two agents. */
async function insertManyDecisions(
  store: SupervisorStore,
  retention: HistoryRetention,
): Promise<void> {
  await insertEnded(store, { runId: 'run-1', retention });
  await store.transaction(async (trx) => {
    for (const instance of ['agent', 'child']) {
      for (let n = 1; n <= 300; n += 1) {
        await insertDecision(trx, decisionRow('run-1', instance, n));
      }
    }
  });
}

/** The number of decisions with content. */
async function remainingIn(store: SupervisorStore): Promise<number> {
  const rows = await store.db.selectFrom('decisions').selectAll().execute();
  return rows.filter((row) => JSON.stringify(row).includes('-content')).length;
}

it.each(MANY_DECISIONS)(
  'deletes the content of many decisions %s in several transactions (SUP-4, CO-2)',
  async (_what, retention, kept) => {
    const store = await openStore();
    await insertManyDecisions(store, retention);
    const removed: number[] = [];
    const transaction: SupervisorStore['transaction'] = async (work, options) => {
      const before = await remainingIn(store);
      const answer = await store.transaction(work, options);
      removed.push(before - (await remainingIn(store)));
      return answer;
    };
    expect(await remainingIn(store)).toBe(600);
    await purgerOf({ db: store.db, transaction }).sweep();
    expect(await remainingIn(store)).toBe(kept);
    expect(Math.max(...removed)).toBeLessThanOrEqual(CALLS_AT_ONCE);
  },
);

it.each(MANY_DECISIONS)(
  'completes the purge %s that ended between two pages of decisions (SUP-4)',
  async (_what, retention, kept) => {
    const store = await openStore();
    await insertManyDecisions(store, retention);
    // The transaction after the first one that deleted content of decisions fails.
    const transaction: SupervisorStore['transaction'] = async (work, options) => {
      if ((await remainingIn(store)) < 600) throw new Error('The process ends here.');
      return await store.transaction(work, options);
    };
    const logged: unknown[] = [];
    await purgerOf({ db: store.db, transaction }, logged).sweep();
    expect(logged).toEqual(['run-1']);
    const remaining = await remainingIn(store);
    expect(remaining).toBeLessThan(600);
    expect(remaining).toBeGreaterThanOrEqual(600 - CALLS_AT_ONCE);
    await purgerOf(store).sweep();
    expect(await remainingIn(store)).toBe(kept);
  },
);
