import { AuditService } from '@writ/contracts/writ/audit/v1/audit_service_pb';
import { HistoryRetention } from '@writ/contracts/writ/supervision/v1/supervision_pb';
import { ToolGatewayService } from '@writ/contracts/writ/tool/v1/tool_gateway_service_pb';
import { ManualClock } from '@writ/kernel';
import { afterEach, beforeEach, expect, it, onTestFinished } from 'vitest';
import { RunPurger } from '../src/app/run/purge-runs.ts';
import type { SupervisorContext } from '../src/context.ts';
import type { SupervisorStore } from '../src/store/supervisor-store.ts';
import { Family } from './family.ts';
import { refundTools } from './refund-tools.ts';
import { openSecondStore } from './supervisor-under-test.ts';

const TABLES = ['agents', 'decisions', 'receipts', 'approvals', 'timeline', 'runs'] as const;

const clock = new ManualClock(new Date(Date.now() - 3_600_000));
let family: Family;
beforeEach(async () => {
  family = await Family.start({ clock });
});
afterEach(() => family.close());

/** All rows of a run, as text. */
async function rowsOf(runId: string): Promise<string> {
  const store = await openSecondStore(family.supervisor);
  const texts: string[] = [];
  for (const table of TABLES) {
    const rows = await store.db.selectFrom(table).selectAll().where('run_id', '=', runId).execute();
    for (const value of rows.flatMap((row) => Object.values(row))) {
      texts.push(value instanceof Uint8Array ? Buffer.from(value).toString() : String(value));
    }
  }
  await store.close();
  return texts.join('\n');
}

it('deletes the content of children with retention RUN after their run, and keeps the content of the run (SUP-4)', async () => {
  const lead = await family.lead();
  const child = await lead.child('op-1', 'lead');
  const kept = await lead.child('op-2', 'scout', { retention: HistoryRetention.PERMANENT });
  const grandchild = await child.child('op-1', 'scout');
  await grandchild.final('op-2', 'Grandchild-content');
  await child.final('op-2', 'Child-content');
  await kept.final('op-1', 'Kept-content');
  await lead.final('op-9', 'Root-content');
  const run = await family.ended(lead.runId);
  const observation = run?.result?.history.find(({ callId }) => callId === 'op-1')?.observationJson;
  expect(observation).toContain('Child-content');
  const before = await rowsOf(lead.runId);
  expect(before).toContain('Grandchild-content');

  // When the run ends, the gateway deletes the tool results of these two agents only.
  const orders = family.supervisor.fakes.requests(ToolGatewayService.method.freeze);
  const purges = orders.flatMap(({ order }) =>
    order?.scope?.kind.case === 'agent' && order.retention === HistoryRetention.RUN
      ? [order.scope.kind.value.agentInstance]
      : [],
  );
  expect(purges.toSorted()).toEqual([child.instance, grandchild.instance].toSorted());

  clock.advance(30_000);
  await expect.poll(() => rowsOf(lead.runId), { interval: 5 }).not.toContain('Grandchild-content');
  const after = await rowsOf(lead.runId);
  for (const content of ['Root-content', 'Kept-content']) expect(after).toContain(content);
  const { runs } = await family.supervisor.runs().listRuns({});
  expect(runs[0]?.purgeTime).toBeUndefined();
  // The child's own records are deleted; the observation of the delegation belongs to the lead.
  const purged = (await family.supervisor.runs().getRun({ runId: lead.runId })).run?.result;
  const answers = purged?.history.map(({ agent, action, observationJson }) => ({
    agent: agent?.instance,
    answer: action?.kind.case === 'final' ? action.kind.value.answer : observationJson,
  }));
  expect(answers).toContainEqual({ agent: lead.instance, answer: 'Root-content' });
  expect(answers).toContainEqual({ agent: kept.instance, answer: 'Kept-content' });
  expect(answers).toContainEqual({ agent: child.instance, answer: '' });
  expect(answers).toContainEqual({
    agent: lead.instance,
    answer: expect.stringContaining('Child-content'),
  });
  const { records } = await family.supervisor
    .as('anna', AuditService)
    .listAuditRecords({ runId: lead.runId, kind: 'agent_purged' });
  expect(records.map(({ agentInstance }) => agentInstance).toSorted()).toEqual(
    [child.instance, grandchild.instance].toSorted(),
  );
});

it('keeps the digests of the arguments in the trace of a purged child (SUP-4, SV-7)', async () => {
  const listed = { registryVersion: 'v1', tools: refundTools() };
  family.supervisor.fakes.answer(ToolGatewayService.method.listTools, () => listed);
  const lead = await family.lead();
  const child = await lead.child('op-1', 'digger');
  // The child may not call this tool, but the trace also contains refused calls.
  const value = { tool: 'get_refund_context', argumentsJson: '{"user_id":42}' };
  await child.propose('op-1', { case: 'tool', value });
  await child.final('op-2');
  await lead.final('op-9');
  const before = (await family.ended(lead.runId))?.result?.trace;
  expect(before?.map(({ argsHash }) => argsHash)).toContain('feaa769a39ae');

  clock.advance(30_000);
  const audit = family.supervisor.as('anna', AuditService);
  const purges = { runId: lead.runId, kind: 'agent_purged' };
  await expect
    .poll(async () => (await audit.listAuditRecords(purges)).records, { interval: 5 })
    .toHaveLength(1);
  expect((await family.ended(lead.runId))?.result?.trace).toEqual(before);
});

it('deletes the content of the other runs and agents when the content of one run cannot be deleted (SUP-4)', async () => {
  const endedRun = async (retention: HistoryRetention): Promise<string> => {
    const lead = await family.lead(retention);
    const child = await lead.child('op-1', 'lead');
    await child.final('op-1', 'Child-content');
    await lead.final('op-9', 'Root-content');
    await family.ended(lead.runId);
    return lead.runId;
  };
  const whole = [await endedRun(HistoryRetention.RUN), await endedRun(HistoryRetention.RUN)];
  const { PERMANENT } = HistoryRetention;
  const partial = [await endedRun(PERMANENT), await endedRun(PERMANENT)];
  const secondStore = await openSecondStore(family.supervisor);
  onTestFinished(() => secondStore.close());
  /** The first run that is purged of each kind; all its transactions fail. */
  const broken = new Map<readonly string[], string>();
  const transaction: SupervisorStore['transaction'] = async (work, options) => {
    const runId = options?.run?.runId ?? '';
    const kind = whole.includes(runId) ? whole : partial;
    if (!broken.has(kind)) broken.set(kind, runId);
    if (broken.get(kind) === runId) throw new Error('The transaction timed out.');
    return await secondStore.transaction(work, options);
  };
  const logged: unknown[] = [];
  const log = { error: ({ run_id }: { run_id: string }) => void logged.push(run_id) };
  const { db } = secondStore;
  const config = { purgeAfterMs: 0 };
  const parts = { store: { db, transaction }, clock, config, telemetry: { log } };
  await new RunPurger(parts as unknown as SupervisorContext).sweep();
  expect(logged).toEqual([broken.get(whole), broken.get(partial)]);
  const audit = family.supervisor.as('anna', AuditService);
  const purged = async (kind: string) =>
    (await audit.listAuditRecords({ kind })).records.map(({ runId }) => runId);
  expect(await purged('run_purged')).toEqual(whole.filter((id) => id !== broken.get(whole)));
  expect(await purged('agent_purged')).toEqual(partial.filter((id) => id !== broken.get(partial)));
});
