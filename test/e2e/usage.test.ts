import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { MessageInitShape } from '@bufbuild/protobuf';
import { createWritClient, type WritClient } from '@writ/client';
import { HookEventType } from '@writ/contracts/writ/hook/v1/hook_event_pb';
import { UsageGroup } from '@writ/contracts/writ/meter/v1/execution_meter_service_pb';
import { BudgetLevel, TabState } from '@writ/contracts/writ/meter/v1/tab_pb';
import type { Run } from '@writ/contracts/writ/run/v1/run_pb';
import type { StartRunRequestSchema } from '@writ/contracts/writ/run/v1/run_service_pb';
import { API_KEYS_FILE, openApiKeys } from '@writ/identity';
import { newId } from '@writ/kernel';
import type { Role } from '@writ/rpc';
import { startTestPlatform, type TestPlatform } from '@writ/testing/platform';
import { afterAll, beforeAll, describe, expect, it, onTestFinished, vi } from 'vitest';

type StartRun = Partial<Omit<MessageInitShape<typeof StartRunRequestSchema>, '$typeName'>>;

const SESSION = 'ses_usage';

let dataDir: string;
let test: TestPlatform;
/** A run that has ended with a refund. */
let ended: Run;
/** A run that waits for an approval during all tests. */
let waiting: Run;

beforeAll(async () => {
  dataDir = mkdtempSync(join(tmpdir(), 'writ-usage-'));
  test = await startTestPlatform({ dataDir });
  ended = await start('auto-1000');
  for await (const _ of test.client.runs.watchRun({ runId: ended.runId })) void _;
  waiting = await start('escalate-1200');
  await vi.waitFor(async () => {
    const { approvals } = await test.client.approvals.listApprovals({ runId: waiting.runId });
    expect(approvals).toHaveLength(1);
  });
});
afterAll(async () => {
  await test.close();
  rmSync(dataDir, { recursive: true, force: true });
});

async function start(script: string, request: StartRun = {}): Promise<Run> {
  const { run } = await test.client.runs.startRun({
    requestId: newId('req'),
    agent: 'refund-worker',
    goal: 'Refund the last charge.',
    sessionId: SESSION,
    model: `sim-${script}`,
    ...request,
  });
  if (run === undefined) throw new Error('StartRun answered without a run.');
  return run;
}

async function clientOf(tenant: string, roles: readonly Role[]): Promise<WritClient> {
  const keys = openApiKeys({ file: join(dataDir, API_KEYS_FILE) });
  const apiKey = await keys.create({ subject: 'reader', tenant, roles: [...roles] });
  return createWritClient({ baseUrl: test.platform.edgeUrl, apiKey });
}

const total = async (filter: { readonly runId?: string; readonly sessionId?: string }) =>
  (await test.client.usage.queryUsage(filter)).rows[0]?.totals;

describe('UsageService', () => {
  it('reads the spent and the remaining budget of a run that is running (EM-10)', async () => {
    const { tab } = await test.client.usage.getRunUsage({ runId: waiting.runId });
    expect(tab).toMatchObject({ runId: waiting.runId, sessionId: SESSION, state: TabState.OPEN });
    const run = tab?.levels.find(({ level }) => level === BudgetLevel.RUN);
    // Two model calls of refund-worker, whose manifest caps a run at 100000 tokens, 1 USD and 40 turns.
    expect(run?.usedTokens).toBeGreaterThan(0n);
    expect(run).toMatchObject({
      limit: { maxTokens: 100_000n, maxCostNanoUsd: 1_000_000_000n, maxTurns: 40n },
      usedTurns: 2n,
      reservedTokens: 0n,
      remainingTokens: 100_000n - (run?.usedTokens ?? 0n),
      remainingCostNanoUsd: 1_000_000_000n - (run?.usedCostNanoUsd ?? 0n),
      remainingTurns: 38n,
    });
    // The refund desk caps neither the session nor the tenant.
    const session = tab?.levels.find(({ level }) => level === BudgetLevel.SESSION);
    expect(session?.remainingTokens).toBeUndefined();
    expect(tab?.runTotals).toEqual(await total({ runId: waiting.runId }));
  });

  it('sums usage by session, run, agent, model and day (EM-10)', async () => {
    const { usage } = test.client;
    const { rows: runs } = await usage.queryUsage({
      sessionId: SESSION,
      groupBy: [UsageGroup.SESSION, UsageGroup.RUN, UsageGroup.AGENT, UsageGroup.MODEL],
    });
    const read = await test.client.runs.getRun({ runId: ended.runId });
    const row = runs.find(({ runId }) => runId === ended.runId);
    expect(row).toMatchObject({
      sessionId: SESSION,
      agent: { name: 'refund-worker', instance: ended.agent?.instance },
      model: 'sim-auto-1000',
      totals: { turns: 4n, estimatedTurns: 0n, failedCalls: 0n },
    });
    expect(row?.totals?.costNanoUsd).toBe(read.run?.result?.usage?.costNanoUsd);
    const session = await total({ sessionId: SESSION });
    const costs = runs.map(({ totals }) => totals?.costNanoUsd ?? 0n);
    expect(session?.costNanoUsd).toBe(costs.reduce((sum, cost) => sum + cost, 0n));
    const { rows: days } = await usage.queryUsage({ groupBy: [UsageGroup.DAY, UsageGroup.TENANT] });
    expect(days.map(({ tenant }) => tenant)).toEqual(days.map(() => 'default'));
    expect(days.at(-1)?.day).toMatch(/^\d{4}-\d\d-\d\d$/);
  });

  it('pages through sums without a gap or a repetition (EM-10)', async () => {
    const { usage } = test.client;
    const groupBy = [UsageGroup.RUN];
    const all = await usage.queryUsage({ groupBy });
    const paged: string[] = [];
    let pageToken = '';
    do {
      const page = await usage.queryUsage({ groupBy, pageSize: 1, pageToken });
      paged.push(...page.rows.map(({ runId }) => runId));
      pageToken = page.nextPageToken;
    } while (pageToken !== '');
    expect(paged).toHaveLength(2);
    expect(paged).toEqual(all.rows.map(({ runId }) => runId));
    const first = await usage.queryUsage({ groupBy, pageSize: 1 });
    const other = { groupBy: [UsageGroup.MODEL], pageToken: first.nextPageToken };
    await expect(usage.queryUsage(other)).rejects.toMatchObject({ reason: 'INVALID_PAGE_TOKEN' });
  });

  it('returns the totals of a session without a run id (EM-10)', async () => {
    const { levels } = await test.client.usage.getBalances({ sessionId: SESSION });
    expect(levels.map(({ level }) => level)).toEqual([
      BudgetLevel.SESSION,
      BudgetLevel.TENANT_DAY,
      BudgetLevel.TENANT_MONTH,
    ]);
    const session = await total({ sessionId: SESSION });
    expect(levels[0]).toMatchObject({
      usedCostNanoUsd: session?.costNanoUsd,
      usedTurns: session?.turns,
    });
  });

  it('reads the pool of a run without its slot grants (EM-10, SB-1)', async () => {
    const { pool } = await test.client.usage.getPool({ runId: waiting.runId });
    expect(pool).toMatchObject({ runId: waiting.runId, held: 1, closed: false });
    expect(pool?.holders.map(({ agent, grant }) => [agent?.name, grant])).toEqual([
      ['refund-worker', ''],
    ]);
    const over = await test.client.usage.getPool({ runId: ended.runId });
    expect(over.pool).toMatchObject({ held: 0, closed: true });
  });

  it('lists the usable models with their prices (EM-10, EM-4)', async () => {
    const { models } = await test.client.usage.listModels({});
    const model = models.find(({ alias }) => alias === 'sim-auto-1000');
    expect(model).toMatchObject({ providerModel: 'sim:auto-1000', contextWindow: 1_000_000n });
    expect(model?.inputPriceNanoUsdPerMillion).toBeGreaterThan(0n);
  });

  it('lets only an operator read another tenant (EM-10, SYS-6)', async () => {
    const rivals = await clientOf('rivals', ['caller', 'admin']);
    const refused = { reason: 'OPERATOR_REQUIRED', metadata: { roles: 'operator' } };
    await expect(rivals.usage.queryUsage({ tenant: 'default' })).rejects.toMatchObject(refused);
    await expect(rivals.usage.getBalances({ tenant: 'default' })).rejects.toMatchObject(refused);
    expect((await rivals.usage.queryUsage({})).rows).toEqual([]);
    const hidden = { reason: 'RUN_NOT_FOUND' };
    const { runId } = waiting;
    await expect(rivals.usage.getRunUsage({ runId })).rejects.toMatchObject(hidden);
    await expect(rivals.usage.getPool({ runId })).rejects.toMatchObject(hidden);
    const operator = await clientOf('ops', ['operator']);
    const { rows } = await operator.usage.queryUsage({ tenant: 'default' });
    expect(rows.map(({ totals }) => totals)).toEqual([await total({})]);
  });
});

describe('caps', () => {
  async function ended(run: Run): Promise<Run | undefined> {
    for await (const _ of test.client.runs.watchRun({ runId: run.runId })) void _;
    return (await test.client.runs.getRun({ runId: run.runId })).run;
  }
  const callsOf = async (run: Run) => (await total({ runId: run.runId }))?.turns ?? 0n;

  it('of a run can be raised during the run, which continues beyond its first caps (EM-3, PE-1)', async () => {
    const { runs, approvals, audit } = test.client;
    const capped = await start('escalate-1200', { runBudget: { maxTurns: 2n } });
    const { runId } = capped;
    const approval = await vi.waitFor(async () => {
      const [pending] = (await approvals.listApprovals({ runId })).approvals;
      if (pending === undefined) throw new Error('No approval is open.');
      return pending;
    });
    const change = { requestId: 'top-up', level: BudgetLevel.RUN, runId, caps: { maxTurns: 40n } };
    const admin = await clientOf('default', ['admin']);
    for (const client of [
      await clientOf('rivals', ['admin']),
      await clientOf('ops', ['operator']),
    ]) {
      await expect(client.usage.setCaps(change)).rejects.toMatchObject({ reason: 'RUN_NOT_FOUND' });
    }
    const caller = await clientOf('default', ['caller', 'approver', 'auditor']);
    await expect(caller.usage.setCaps(change)).rejects.toMatchObject({ kind: 'permission_denied' });
    const { balance } = await admin.usage.setCaps(change);
    expect(balance).toMatchObject({ level: BudgetLevel.RUN, remainingTurns: 38n });
    expect(await admin.usage.setCaps(change)).toMatchObject({ balance: { capsSetBy: 'reader' } });
    const approve = { approvalId: approval.approvalId, requestId: 'yes-top-up' };
    const value = { changesJson: '{"amount_usd": 800}' };
    const answer = { case: 'approveWithEdits' as const, value };
    await approvals.decideApproval({ ...approve, answer });
    const over = await ended(capped);
    expect(over).toMatchObject({ runBudget: { maxTurns: 40n }, result: { stopReason: 'success' } });
    const types: (HookEventType | undefined)[] = [];
    for await (const { event } of runs.watchRun({ runId }))
      if (event?.entry.case === 'hook') types.push(event.entry.value.type);
    expect(types.filter((type) => type === HookEventType.BUDGET_CHANGED)).toHaveLength(1);
    const { records } = await audit.listAuditRecords({ runId, kind: 'set_caps' });
    expect(records.map(({ canonicalJson }) => JSON.parse(canonicalJson))).toMatchObject([
      { run_id: runId, level: 'run', ordered_by: 'reader', caps: '{"maxTurns":40}' },
    ]);
    const late = { ...change, requestId: 'too-late' };
    await expect(admin.usage.setCaps(late)).rejects.toMatchObject({ reason: 'RUN_ENDED' });
  });

  it('of a session, set by the first StartRun request, apply to all runs of the session (EM-3)', async () => {
    const sessionId = 'ses_capped';
    const sessionBudget = { maxTurns: 5n };
    const first = await ended(await start('auto-1000', { sessionId, sessionBudget }));
    expect(first).toMatchObject({ sessionBudget, result: { stopReason: 'success' } });
    const second = await start('auto-1000', { sessionId, sessionBudget: { maxTurns: 100n } });
    expect((await ended(second))?.result?.stopReason).toBe('budget_exhausted:turns');
    expect(await callsOf(second)).toBe(1n);
    const { levels } = await test.client.usage.getBalances({ sessionId });
    expect(levels[0]).toMatchObject({ limit: sessionBudget, usedTurns: 5n, remainingTurns: 0n });
    // An admin of the tenant grants more.
    const admin = await clientOf('default', ['admin']);
    const change = { requestId: 'more', level: BudgetLevel.SESSION, sessionId };
    const { balance } = await admin.usage.setCaps({ ...change, caps: { maxTurns: 50n } });
    expect(balance).toMatchObject({ remainingTurns: 45n, capsSetBy: 'reader' });
    const third = await ended(await start('auto-1000', { sessionId, sessionBudget }));
    expect(third?.result?.stopReason).toBe('success');
  });

  it('of a tenant are set by an operator at run time, and the audit log records who set them (EM-3, SV-8)', async () => {
    const tenant = 'default';
    const level = BudgetLevel.TENANT_DAY;
    const admin = await clientOf(tenant, ['admin', 'caller']);
    const request = { level, caps: { maxTurns: 0n } };
    await expect(admin.usage.setCaps({ ...request, requestId: 'own' })).rejects.toMatchObject({
      reason: 'OPERATOR_REQUIRED',
    });
    const operator = await clientOf('ops', ['operator']);
    await operator.usage.setCaps({ ...request, requestId: 'stop', tenant });
    const stopped = await ended(await start('auto-1000'));
    expect(stopped?.result?.stopReason).toBe('budget_exhausted:turns');
    await operator.usage.setCaps({ requestId: 'go', tenant, level });
    expect((await ended(await start('auto-1000')))?.result?.stopReason).toBe('success');
    const { records } = await test.client.audit.listAuditRecords({ kind: 'set_caps' });
    const facts = records.map(({ canonicalJson }) => JSON.parse(canonicalJson) as unknown);
    expect(facts.slice(-2)).toMatchObject([
      { ordered_by: 'reader', ordered_for: 'ops', level: 'tenant_day', caps: '{"maxTurns":0}' },
      { ordered_by: 'reader', ordered_for: 'ops', level: 'tenant_day', caps: 'removed' },
    ]);
  });

  it('of a manifest apply to the session of its runs (EM-3)', async () => {
    const agents = `agents:
  - name: capped
    kind: json-action
    model: { model: refund-desk, also_allowed: ["sim-*"], json_mode: true }
    tools: [get_refund_context]
    session_budget: { max_turns: 0 }
`;
    const own = await startTestPlatform({ files: { WRIT_AGENTS_FILE: agents } });
    onTestFinished(() => own.close());
    const { run } = await own.client.runs.startRun({
      requestId: newId('req'),
      agent: 'capped',
      goal: 'Look it up.',
      model: 'sim-auto-1000',
      sessionBudget: { maxTurns: 10n },
    });
    for await (const _ of own.client.runs.watchRun({ runId: run?.runId ?? '' })) void _;
    const read = await own.client.runs.getRun({ runId: run?.runId ?? '' });
    expect(read.run).toMatchObject({
      sessionBudget: { maxTurns: 0n },
      result: { stopReason: 'budget_exhausted:turns' },
    });
  });
});
