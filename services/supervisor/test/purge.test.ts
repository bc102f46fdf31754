import { once } from 'node:events';
import { AuditService } from '@writ/contracts/writ/audit/v1/audit_service_pb';
import { CallStatus } from '@writ/contracts/writ/identity/v1/claims_pb';
import { type Run, RunState } from '@writ/contracts/writ/run/v1/run_pb';
import { HistoryRetention } from '@writ/contracts/writ/supervision/v1/supervision_pb';
import {
  ResolvedOutcome,
  ToolGatewayService,
} from '@writ/contracts/writ/tool/v1/tool_gateway_service_pb';
import { AgentWorkerService } from '@writ/contracts/writ/worker/v1/agent_worker_service_pb';
import { ManualClock } from '@writ/kernel';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { RunPurger } from '../src/app/run/purge-runs.ts';
import type { SupervisorContext } from '../src/context.ts';
import type { SupervisorStore } from '../src/store/supervisor-store.ts';
import { exportLines, verifyWith } from './audit-export.ts';
import { finalText, LOOK_UP, RefundHarness, refund, TestAgent } from './refund-harness.ts';
import { openSecondStore } from './supervisor-under-test.ts';

const TABLES = [
  ...(['runs', 'agents', 'decisions', 'facts', 'receipts', 'approvals', 'timeline'] as const),
  ...(['orders', 'audit', 'spawns'] as const),
] as const;
const GOAL = 'Goal-content';
const CONTENT = /[A-Z][a-z]+-content/g;
const CONTEXT = { user: { id: 42, name: 'User-content' }, charge: { amount_usd: 1200 } };

describe('a run without retention', () => {
  const clock = new ManualClock(new Date(Date.now() - 3_600_000));
  let harness: RefundHarness;

  beforeAll(async () => {
    harness = await RefundHarness.start({ clock });
  });
  afterAll(() => harness.close());

  /** Starts a run. */
  const startedRun = async (retention: HistoryRetention, requestId: string): Promise<TestAgent> => {
    const { fakes } = harness.supervisor;
    const before = fakes.deliveries.length;
    const start = { requestId, agent: 'refund-worker', goal: GOAL, retention };
    await harness.supervisor.runs().startRun({ ...start, dataJson: '{"note":"Data-content"}' });
    await fakes.called(AgentWorkerService.method.deliver, before + 1);
    const delivery = fakes.deliveries[before];
    if (delivery === undefined) throw new Error('The run was not delivered.');
    return new TestAgent(harness, delivery);
  };

  /** Starts a run with contents in every table, and ends it with its answer. */
  const endedRun = async (
    retention: HistoryRetention,
    requestId = `r-${retention}`,
  ): Promise<TestAgent> => {
    const agent = await startedRun(retention, requestId);
    const lookupReceipt = await agent.execute('op-1', LOOK_UP, CONTEXT);
    const observations = [{ callId: 'op-1', content: JSON.stringify(CONTEXT) }];
    const more = { receipts: [lookupReceipt], observations };
    const escalated = await agent.propose('op-2', refund(1200, 'Reason-content'), more);
    await harness.approvals('dora').decideApproval({
      approvalId: escalated.approvalId,
      requestId: `d-${requestId}`,
      answer: { case: 'reject', value: {} },
      comment: 'Comment-content',
    });
    await agent.propose('op-3', finalText('Answer-content'));
    await harness.ended(agent);
    return agent;
  };

  const runOf = async ({ scope: { runId } }: TestAgent): Promise<Run> => {
    const { run } = await harness.supervisor.runs().getRun({ runId });
    if (run === undefined) throw new Error('The run does not exist.');
    return run;
  };

  /** All rows of a run, as text. */
  const rowsOf = async ({ scope: { runId } }: TestAgent): Promise<string> => {
    const secondStore = await openSecondStore(harness.supervisor);
    const texts: string[] = [];
    for (const table of TABLES) {
      const rows = await secondStore.db
        .selectFrom(table)
        .selectAll()
        .where('run_id', '=', runId)
        .execute();
      for (const value of rows.flatMap((row) => Object.values(row))) {
        texts.push(value instanceof Uint8Array ? Buffer.from(value).toString() : String(value));
      }
    }
    await secondStore.close();
    return texts.join('\n');
  };

  /** Reports another receipt of the first call. */
  const reportLate = async (agent: TestAgent, revision: number): Promise<readonly string[]> => {
    const value = { tool: 'get_refund_context', argumentsJson: '{"user_id":42}' };
    const executedAction = { kind: { case: 'tool', value } };
    const decision = { callId: 'op-1', executedAction } as Parameters<TestAgent['receipt']>[0];
    return await harness.report(await agent.receipt(decision, CONTEXT, { revision }));
  };

  it('is readable until its retention has passed, and then without contents (SUP-4)', async () => {
    const agents = [await endedRun(HistoryRetention.NONE), await endedRun(HistoryRetention.RUN)];
    for (const agent of agents) {
      const run = await runOf(agent);
      expect(run).toMatchObject({ goal: GOAL, result: { answer: 'Answer-content' } });
      expect(run.purgeTime).toBeUndefined();
      expect(new Set((await rowsOf(agent)).match(CONTENT))).toEqual(
        new Set(['Goal', 'Data', 'User', 'Reason', 'Comment', 'Answer'].map((x) => `${x}-content`)),
      );
    }
    clock.advance(30_000);
    for (const agent of agents) {
      await expect.poll(async () => (await runOf(agent)).purgeTime, { interval: 5 }).toBeDefined();
      const run = await runOf(agent);
      expect(run).toMatchObject({
        goal: '',
        state: RunState.COMPLETED,
        result: { answer: '', history: [], stopReason: 'nothing_done', usage: { turns: 2n } },
      });
      expect(run.result?.trace.map(({ tool }) => tool)).toEqual([
        'get_refund_context',
        'issue_refund',
        'final',
      ]);
      expect((await rowsOf(agent)).match(CONTENT)).toBeNull();
    }
  });

  it('keeps a timeline without gaps and a complete audit log (SUP-4, SV-8)', async () => {
    const agent = await endedRun(HistoryRetention.UNSPECIFIED);
    const kept = await runOf(agent);
    clock.advance(60_000);
    const { runs } = await harness.supervisor.runs().listRuns({});
    const [purged] = runs.filter(({ purgeTime }) => purgeTime !== undefined);
    const runId = purged?.runId ?? '';
    const events = await Array.fromAsync(harness.supervisor.runs().watchRun({ runId }));
    expect(events.map(({ event }) => event?.sequence)).toEqual(
      events.map((_, index) => BigInt(index + 1)),
    );
    expect(events.at(-1)?.event?.entry.case).toBe('result');
    const { records } = await harness.supervisor
      .as('anna', AuditService)
      .listAuditRecords({ runId });
    expect(records.map(({ kind }) => kind)).toEqual(
      expect.arrayContaining(['run_started', 'decision', 'receipt', 'run_ended', 'run_purged']),
    );
    const lines = await exportLines(harness.supervisor);
    expect(await verifyWith(harness.supervisor.config.dataDir, lines)).toMatchObject({
      holds: true,
    });
    // A run with unlimited retention is unchanged.
    expect(await runOf(agent)).toEqual(kept);
  });

  it('records a late receipt without its contents (SUP-4, TG-8)', async () => {
    const { runs } = await harness.supervisor.runs().listRuns({});
    const [purged] = runs.filter(({ purgeTime }) => purgeTime !== undefined);
    const [delivery] = harness.supervisor.fakes.deliveries.filter(
      ({ supervision }) => supervision?.runId === purged?.runId,
    );
    if (delivery === undefined) throw new Error('The run was not delivered.');
    const agent = new TestAgent(harness, delivery);
    expect(await reportLate(agent, 2)).toHaveLength(1);
    expect((await rowsOf(agent)).match(CONTENT)).toBeNull();
    const { records } = await harness.supervisor
      .as('anna', AuditService)
      .listAuditRecords({ runId: purged?.runId ?? '', kind: 'receipt' });
    expect(JSON.parse(records.at(-1)?.canonicalJson ?? '')).toMatchObject({ revision: 2 });
  });

  it('is purged completely even if late receipts amend its result during the purge (SUP-4, TG-8)', async () => {
    const agent = await endedRun(HistoryRetention.NONE, 'amended');
    const secondStore = await openSecondStore(harness.supervisor);
    let transactions = 0;
    // Reports a late receipt before each transaction of the purge: the timeline, the decisions, then the other rows.
    const transaction: SupervisorStore['transaction'] = async (work, options) => {
      transactions += 1;
      expect(await reportLate(agent, transactions + 1)).toHaveLength(1);
      return await secondStore.transaction(work, options);
    };
    const { db } = secondStore;
    const config = { purgeAfterMs: 0 };
    const context = { store: { db, transaction }, clock, config } as unknown as SupervisorContext;
    await new RunPurger(context).sweep();
    await secondStore.close();
    expect(transactions).toBe(3);
    expect((await runOf(agent)).purgeTime).toBeDefined();
    expect((await rowsOf(agent)).match(CONTENT)).toBeNull();
  });

  it('rewrites no content again when its purge fails and is repeated (SUP-4, CO-2)', async () => {
    const agent = await endedRun(HistoryRetention.NONE, 'repeated');
    const secondStore = await openSecondStore(harness.supervisor);
    const { runId } = agent.scope;
    const setResult = (result: string) =>
      secondStore.transaction((trx) =>
        trx.updateTable('runs').set({ result }).where('run_id', '=', runId).execute(),
      );
    const { result } = await secondStore.db
      .selectFrom('runs')
      .select('result')
      .where('run_id', '=', runId)
      .executeTakeFirstOrThrow();
    const updated = new Set<unknown>();
    const transaction: SupervisorStore['transaction'] = async (work, options) =>
      await secondStore.transaction(async (trx) => {
        const update = vi.spyOn(trx, 'updateTable');
        const answer = await work(trx);
        for (const [table] of update.mock.calls) updated.add(table);
        return answer;
      }, options);
    const error = vi.fn();
    const config = { purgeAfterMs: 0 };
    const store = { db: secondStore.db, transaction };
    const parts = { store, clock, config, telemetry: { log: { error } } };
    const sweep = () => new RunPurger(parts as unknown as SupervisorContext).sweep();
    await setResult('{');
    await sweep();
    const tables = ['timeline', 'decisions', 'approvals'];
    expect([...updated]).toEqual(expect.arrayContaining(tables));
    updated.clear();
    await sweep();
    expect(error).toHaveBeenCalledTimes(2);
    expect(tables.filter((table) => updated.has(table))).toEqual([]);
    await setResult(result ?? '');
    await sweep();
    await secondStore.close();
    expect((await rowsOf(agent)).match(CONTENT)).toBeNull();
  });

  /**
   * Ends a run with a call whose outcome a person resolved, but whose approval does not contain the request of the
   * person, as after a crash. Returns its agent and a function that repeats the request.
   */
  const resolvedRun = async (requestId: string) => {
    const agent = await startedRun(HistoryRetention.NONE, requestId);
    const receipts = [await agent.execute('op-1', LOOK_UP, {})];
    const paid = await agent.propose('op-2', refund(250), { receipts });
    const stopReason = 'outcome_unknown:issue_refund';
    const unknown = { status: CallStatus.UNKNOWN, stopReason };
    await harness.report(await agent.receipt(paid, {}, unknown));
    const { runId } = agent.scope;
    const { approvals } = await harness.approvals().listApprovals({ runId });
    const approvalId = approvals[0]?.approvalId ?? '';
    const more = { revision: 2, resolvedBy: 'dora' };
    const receipt = await agent.receipt(paid, { status: 'ok' }, more);
    await harness.report(receipt);
    await agent.propose('op-3', finalText('Answer-content'));
    await harness.ended(agent);
    const { resolveOutcome } = ToolGatewayService.method;
    harness.supervisor.fakes.answer(resolveOutcome, () => ({ receipt }));
    const value = { outcome: ResolvedOutcome.DONE, resultJson: '{}' };
    const repeat = async () => {
      const { approval } = await harness.approvals('dora').decideApproval({
        approvalId,
        requestId: `d-${requestId}`,
        answer: { case: 'resolve', value },
        comment: 'Comment-content',
      });
      return approval?.humanApproval;
    };
    return { agent, repeat };
  };

  it('stores no comment of a resolution that is repeated after its purge (SUP-4, TG-5)', async () => {
    const { agent, repeat } = await resolvedRun('resolved');
    clock.advance(30_000);
    await expect.poll(async () => (await runOf(agent)).purgeTime, { interval: 5 }).toBeDefined();
    const answer = await repeat();
    expect(answer).toMatchObject({ approved: true, decidedBy: 'dora', comment: '' });
    expect(await repeat()).toEqual(answer);
    expect((await rowsOf(agent)).match(CONTENT)).toBeNull();
  });

  it('is purged completely even if a resolution is repeated during the purge (SUP-4, TG-5)', async () => {
    const { agent, repeat } = await resolvedRun('resolved-late');
    const secondStore = await openSecondStore(harness.supervisor);
    let transactions = 0;
    const transaction: SupervisorStore['transaction'] = async (work, options) => {
      transactions += 1;
      // Before the last transaction of the purge.
      if (transactions === 3) expect(await repeat()).toMatchObject({ comment: 'Comment-content' });
      return await secondStore.transaction(work, options);
    };
    const config = { purgeAfterMs: 0 };
    const parts = { store: { db: secondStore.db, transaction }, clock, config };
    await new RunPurger(parts as unknown as SupervisorContext).sweep();
    await secondStore.close();
    expect(transactions).toBe(3);
    expect((await rowsOf(agent)).match(CONTENT)).toBeNull();
  });

  it('still reports after its purge that the agent withdrew its proposal (SUP-4, AP-4)', async () => {
    const agent = await startedRun(HistoryRetention.NONE, 'withdrawn');
    const receipts = [await agent.execute('op-1', LOOK_UP, CONTEXT)];
    const observations = [{ callId: 'op-1', content: JSON.stringify(CONTEXT) }];
    const proposal = refund(1200, 'Reason-content');
    const { approvalId } = await agent.propose('op-2', proposal, { receipts, observations });
    expect(await agent.withdraw('op-2')).toBe(true);
    await agent.propose('op-3', finalText('Answer-content'));
    await harness.ended(agent);
    clock.advance(30_000);
    await expect.poll(async () => (await runOf(agent)).purgeTime, { interval: 5 }).toBeDefined();
    const answer = { case: 'reject', value: {} } as const;
    const decided = harness
      .approvals('dora')
      .decideApproval({ approvalId, requestId: 'd-1', answer });
    await expect(decided).rejects.toMatchObject({
      reason: 'APPROVAL_DECIDED',
      message: expect.stringMatching(/was withdrawn at .*Z, by its agent\.$/),
    });
    expect((await rowsOf(agent)).match(CONTENT)).toBeNull();
  });

  it('is purged once, even after crashes during the purge (SUP-4)', async () => {
    const { supervisor } = harness;
    // This process stops before it purges the run.
    const agent = await endedRun(HistoryRetention.NONE, 'crash');
    await supervisor.stop();
    const { runId } = agent.scope;
    // Crash between two timeline entries and between rows.
    for (const [statement, remaining] of [
      ['update "timeline"', /Answer-content/],
      ['update "decisions"', /Reason-content/],
      ['update "receipts"', /User-content/],
      ['delete from "facts"', /User-content/],
    ] as const) {
      const { child } = await supervisor.spawnProcess({
        execArgv: ['--import', new URL('./kill-at-commit.ts', import.meta.url).href],
        env: { WRIT_TEST_KILL_BEFORE: statement },
      });
      const [, signal] = await once(child, 'exit');
      expect(signal, statement).toBe('SIGKILL');
      expect(await rowsOf(agent), statement).toMatch(remaining);
    }
    // Advance past the audit lease of the last process, which used the system clock.
    clock.advance(Date.now() - clock.now().getTime() + 60_000);
    await supervisor.restart();
    await expect.poll(async () => (await runOf(agent)).purgeTime, { interval: 5 }).toBeDefined();
    expect((await rowsOf(agent)).match(CONTENT)).toBeNull();
    const { records } = await supervisor.as('anna', AuditService).listAuditRecords({ runId });
    expect(records.filter(({ kind }) => kind === 'run_purged')).toHaveLength(1);
    const events = await Array.fromAsync(supervisor.runs().watchRun({ runId }));
    expect(events.map(({ event }) => event?.sequence)).toEqual(
      events.map((_, index) => BigInt(index + 1)),
    );
  });
});
