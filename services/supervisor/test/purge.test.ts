import { once } from 'node:events';
import { AuditService } from '@writ/contracts/writ/audit/v1/audit_service_pb';
import { type Run, RunState } from '@writ/contracts/writ/run/v1/run_pb';
import { HistoryRetention } from '@writ/contracts/writ/supervision/v1/supervision_pb';
import { AgentWorkerService } from '@writ/contracts/writ/worker/v1/agent_worker_service_pb';
import { ManualClock } from '@writ/kernel';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { exportLines, verifyWith } from './audit-export.ts';
import { DeskAgent, finalText, LOOK_UP, RefundDesk, refund } from './refund-desk.ts';
import { openBeside } from './supervisor-under-test.ts';

const TABLES = [
  ...(['runs', 'agents', 'decisions', 'facts', 'receipts', 'approvals', 'timeline'] as const),
  ...(['orders', 'audit', 'spawns'] as const),
] as const;
const GOAL = 'Goal-content';
const CONTENT = /[A-Z][a-z]+-content/g;
const CONTEXT = { user: { id: 42, name: 'User-content' }, charge: { amount_usd: 1200 } };

describe('a run that is not kept', () => {
  const clock = new ManualClock(new Date(Date.now() - 3_600_000));
  let desk: RefundDesk;

  beforeAll(async () => {
    desk = await RefundDesk.start({ clock });
  });
  afterAll(() => desk.close());

  /** A run with something to delete in every table, ended by its answer. */
  const ended = async (
    retention: HistoryRetention,
    requestId = `r-${retention}`,
  ): Promise<DeskAgent> => {
    const { fakes } = desk.supervisor;
    const before = fakes.deliveries.length;
    const start = { requestId, agent: 'refund-worker', goal: GOAL, retention };
    await desk.supervisor.runs().startRun({ ...start, dataJson: '{"note":"Data-content"}' });
    await fakes.called(AgentWorkerService.method.deliver, before + 1);
    const delivery = fakes.deliveries[before];
    if (delivery === undefined) throw new Error('Nothing was delivered.');
    const agent = new DeskAgent(desk, delivery);
    const looked = await agent.execute('op-1', LOOK_UP, CONTEXT);
    const observations = [{ callId: 'op-1', content: JSON.stringify(CONTEXT) }];
    const more = { receipts: [looked], observations };
    const asked = await agent.propose('op-2', refund(1200, 'Reason-content'), more);
    await desk.approvals('dora').decideApproval({
      approvalId: asked.approvalId,
      requestId: `d-${requestId}`,
      answer: { case: 'reject', value: {} },
      comment: 'Comment-content',
    });
    await agent.propose('op-3', finalText('Answer-content'));
    await desk.ended(agent);
    return agent;
  };

  const runOf = async ({ scope: { runId } }: DeskAgent): Promise<Run> => {
    const { run } = await desk.supervisor.runs().getRun({ runId });
    if (run === undefined) throw new Error('There is no run.');
    return run;
  };

  /** Everything in the store that belongs to a run, as text. */
  const rowsOf = async ({ scope: { runId } }: DeskAgent): Promise<string> => {
    const beside = await openBeside(desk.supervisor);
    const texts: string[] = [];
    for (const table of TABLES) {
      const rows = await beside.db
        .selectFrom(table)
        .selectAll()
        .where('run_id', '=', runId)
        .execute();
      for (const value of rows.flatMap((row) => Object.values(row))) {
        texts.push(value instanceof Uint8Array ? Buffer.from(value).toString() : String(value));
      }
    }
    await beside.close();
    return texts.join('\n');
  };

  it('is read like any other until some time after its end, then without contents (SUP-4)', async () => {
    const agents = [await ended(HistoryRetention.NONE), await ended(HistoryRetention.RUN)];
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
        result: { answer: '', history: [], stopReason: 'success', usage: { turns: 2n } },
      });
      expect(run.result?.trace.map(({ tool }) => tool)).toEqual([
        'get_refund_context',
        'issue_refund',
        'final',
      ]);
      expect((await rowsOf(agent)).match(CONTENT)).toBeNull();
    }
  });

  it('keeps its timeline without gaps, and its audit record whole (SUP-4, SV-8)', async () => {
    const agent = await ended(HistoryRetention.UNSPECIFIED);
    const kept = await runOf(agent);
    clock.advance(60_000);
    const { runs } = await desk.supervisor.runs().listRuns({});
    const [purged] = runs.filter(({ purgeTime }) => purgeTime !== undefined);
    const runId = purged?.runId ?? '';
    const events = await Array.fromAsync(desk.supervisor.runs().watchRun({ runId }));
    expect(events.map(({ event }) => event?.sequence)).toEqual(
      events.map((_, index) => BigInt(index + 1)),
    );
    expect(events.at(-1)?.event?.entry.case).toBe('result');
    const { records } = await desk.supervisor.as('anna', AuditService).listAuditRecords({ runId });
    expect(records.map(({ kind }) => kind)).toEqual(
      expect.arrayContaining(['run_started', 'decision', 'receipt', 'run_ended', 'run_purged']),
    );
    const lines = await exportLines(desk.supervisor);
    expect(await verifyWith(desk.supervisor.config.dataDir, lines)).toMatchObject({ holds: true });
    // What is to be kept for ever is.
    expect(await runOf(agent)).toEqual(kept);
  });

  it('takes a receipt that comes after all on record, without its contents (SUP-4, TG-8)', async () => {
    const { runs } = await desk.supervisor.runs().listRuns({});
    const [purged] = runs.filter(({ purgeTime }) => purgeTime !== undefined);
    const [delivery] = desk.supervisor.fakes.deliveries.filter(
      ({ supervision }) => supervision?.runId === purged?.runId,
    );
    if (delivery === undefined) throw new Error('It was never delivered.');
    const agent = new DeskAgent(desk, delivery);
    const value = { tool: 'get_refund_context', argumentsJson: '{"user_id":42}' };
    const executedAction = { kind: { case: 'tool', value } };
    const decision = { callId: 'op-1', executedAction } as Parameters<DeskAgent['receipt']>[0];
    const receipt = await agent.receipt(decision, CONTEXT, { revision: 2 });
    expect(await desk.report(receipt)).toHaveLength(1);
    expect((await rowsOf(agent)).match(CONTENT)).toBeNull();
    const { records } = await desk.supervisor
      .as('anna', AuditService)
      .listAuditRecords({ runId: purged?.runId ?? '', kind: 'receipt' });
    expect(JSON.parse(records.at(-1)?.canonicalJson ?? '')).toMatchObject({ revision: 2 });
  });

  it('is purged to its end after a crash in the middle, once (SUP-4)', async () => {
    const { supervisor } = desk;
    // Nobody purges it in this process.
    const agent = await ended(HistoryRetention.NONE, 'crash');
    await supervisor.stop();
    const { runId } = agent.scope;
    // Between two entries of the timeline, and in the midst of the rows.
    for (const [statement, isLeft] of [
      ['update "timeline"', /Answer-content/],
      ['update "receipts"', /Reason-content/],
      ['delete from "facts"', /Reason-content/],
    ] as const) {
      const { child } = await supervisor.spawnProcess({
        execArgv: ['--import', new URL('./kill-at-commit.ts', import.meta.url).href],
        env: { WRIT_TEST_KILL_BEFORE: statement },
      });
      const [, signal] = await once(child, 'exit');
      expect(signal, statement).toBe('SIGKILL');
      expect(await rowsOf(agent), statement).toMatch(isLeft);
    }
    // Past the lease of the last one's chainer, whose clock was the machine's.
    clock.advance(Date.now() - clock.now().getTime() + 60_000);
    await supervisor.startAgain();
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
