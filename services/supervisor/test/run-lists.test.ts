import { RunState } from '@writ/contracts/writ/run/v1/run_pb';
import { SlotState } from '@writ/contracts/writ/spawn/v1/pool_pb';
import { SpawnBudgetService } from '@writ/contracts/writ/spawn/v1/spawn_budget_service_pb';
import { Priority } from '@writ/contracts/writ/supervision/v1/supervision_pb';
import { ToolGatewayService } from '@writ/contracts/writ/tool/v1/tool_gateway_service_pb';
import { SideEffect } from '@writ/contracts/writ/tool/v1/tool_pb';
import { UnavailableError } from '@writ/kernel';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { type RunFilter, runPage } from '../src/store/run/run-lists.ts';
import { Family } from './family.ts';
import { openSecondStore, SupervisorUnderTest } from './supervisor-under-test.ts';

describe('ListRunAgents', () => {
  let family: Family;
  beforeEach(async () => {
    family = await Family.start();
  });
  afterEach(() => family.close());

  it('returns the tree of a running run with parents, priorities and slots, in pages (SUP-1, PE-1)', async () => {
    const lead = await family.lead();
    const scout = await lead.child('call-1');
    const digger = await lead.child('call-2', 'digger');
    const { runId } = lead;
    family.supervisor.fakes.answer(SpawnBudgetService.method.getPool, () => ({
      pool: {
        holders: [lead, digger].map(({ instance }) => ({
          agent: { name: 'any', instance },
          state: SlotState.ACTIVE,
        })),
        paused: [{ agent: { name: 'scout', instance: scout.instance }, state: SlotState.PAUSED }],
      },
    }));
    const runs = family.supervisor.runs();
    const first = await runs.listRunAgents({ runId, pageSize: 2 });
    const second = await runs.listRunAgents({ runId, pageToken: first.nextPageToken });
    expect(first.agents).toHaveLength(2);
    expect(second.nextPageToken).toBe('');
    const [root, ...children] = [...first.agents, ...second.agents];
    expect(root).toMatchObject({
      agent: { name: 'lead', instance: lead.instance },
      depth: 0,
      state: RunState.RUNNING,
      slot: SlotState.ACTIVE,
    });
    expect(root?.parent).toBeUndefined();
    const byName = Object.fromEntries(children.map((child) => [child.agent?.name, child]));
    expect(byName).toMatchObject({
      scout: { depth: 1, priority: Priority.LOW, slot: SlotState.PAUSED },
      digger: { depth: 1, slot: SlotState.ACTIVE },
    });
    for (const child of children) expect(child.parent?.instance).toBe(lead.instance);
  });

  it('answers while spawn-budget is down, and shows how agents ended (SYS-4)', async () => {
    const lead = await family.lead();
    const scout = await lead.child('call-1');
    await scout.final('final-1');
    const down = new UnavailableError(
      'STORE_UNREACHABLE',
      'The database of spawn-budget does not respond.',
    );
    family.supervisor.fakes.fail(SpawnBudgetService.method.getPool, down);
    const { agents } = await family.supervisor.runs().listRunAgents({ runId: lead.runId });
    expect(agents.map(({ slot }) => slot)).toEqual([SlotState.UNSPECIFIED, SlotState.UNSPECIFIED]);
    expect(agents[1]).toMatchObject({ stopReason: 'success', endTime: expect.anything() });
  });

  it('rejects a run of another tenant as not found (SYS-6)', async () => {
    const { runId } = await family.lead();
    await expect(family.supervisor.runs('eve').listRunAgents({ runId })).rejects.toMatchObject({
      reason: 'RUN_NOT_FOUND',
    });
  });
});

describe('ListTools', () => {
  let supervisor: SupervisorUnderTest;
  beforeEach(async () => {
    supervisor = await SupervisorUnderTest.start();
  });
  afterEach(() => supervisor.close());

  it('returns schema, hints, risk and source of the tools of the tenant, and names no other tenant (TG-6, SYS-6)', async () => {
    const definition = {
      description: 'Looks.',
      inputSchemaJson: '{"type":"object"}',
      sideEffect: SideEffect.READ_ONLY,
      risk: 0.25,
      source: 'local',
    };
    supervisor.fakes.answer(ToolGatewayService.method.listTools, ({ pageSize, pageToken }) => ({
      tools: [
        { ...definition, name: `look-${pageSize}-${pageToken}` },
        { ...definition, name: 'ours', allowedTenants: { names: ['acme', 'third'] } },
        { ...definition, name: 'theirs', allowedTenants: { names: ['rivals'] } },
        { ...definition, name: 'not-ours', allowedTenants: { names: ['acme'], except: true } },
      ],
      registryVersion: 'v1',
      nextPageToken: 'look',
    }));
    const request = { pageSize: 7, pageToken: 'b' };
    const response = await supervisor.runs('boris').listTools(request);
    expect(response).toMatchObject({ nextPageToken: 'look', registryVersion: 'v1' });
    expect(response.tools.map(({ name }) => name)).toEqual(['look-7-b', 'ours']);
    expect(response.tools[0]).toMatchObject(definition);
    expect(response.tools[1]?.allowedTenants).toBeUndefined();
  });

  it('requires the role caller, auditor or admin (PE-1)', async () => {
    await expect(supervisor.runs('dora').listTools({})).rejects.toMatchObject({
      kind: 'permission_denied',
    });
  });
});

describe('ListRuns', () => {
  let supervisor: SupervisorUnderTest;
  beforeEach(async () => {
    supervisor = await SupervisorUnderTest.start();
  });
  afterEach(() => supervisor.close());

  it('filters by time of creation: from start_time on, before end_time (PE-2)', async () => {
    const runs = supervisor.runs();
    const started = [];
    for (const number of [1, 2, 3]) {
      const { run } = await runs.startRun({ requestId: `r-${number}`, agent: 'slow', goal: 'Go.' });
      started.push(run);
    }
    const times = started.map((run) => run?.createTime);
    const ids = started.map((run) => run?.runId);
    const [first, second] = times;
    const from = await runs.listRuns({ ...(second && { startTime: second }), oldestFirst: true });
    expect(from.runs.map(({ runId }) => runId)).toEqual(ids.slice(indexOfTime(times, second)));
    const before = await runs.listRuns({ ...(first && { endTime: first }) });
    expect(before.runs).toEqual([]);
  });

  it.skipIf(process.env.WRIT_TEST_POSTGRES_URL !== undefined).each([
    ['none', {}],
    ['agent', { agent: 'worker' }],
    ['session', { sessionId: 'session-1' }],
    ['time', { since: new Date(0), until: new Date() }],
  ] as const)('reads a page with filter %s in the order of an index (PE-2)', async (_, filter) => {
    const store = await openSecondStore(supervisor);
    try {
      const every: RunFilter = {
        tenant: 'acme',
        states: [],
        agent: '',
        sessionId: '',
        labels: {},
        since: undefined,
        until: undefined,
        oldestFirst: false,
        after: { createdAt: new Date(), runId: 'run-1' },
        limit: 50,
      };
      const query = runPage(store.db, { ...every, ...filter }).compile();
      const plan = await store.db.executeQuery<{ detail: string }>({
        ...query,
        sql: `explain query plan ${query.sql}`,
      });
      const details = plan.rows.map(({ detail }) => detail).join('\n');
      expect(details).toMatch(/SEARCH runs USING INDEX runs_by_/);
      expect(details).not.toMatch(/SCAN|TEMP B-TREE/);
    } finally {
      await store.close();
    }
  });
});

/**
 * Returns the index of the first run with this creation time; runs that are created in the same millisecond have equal
 * times.
 */
function indexOfTime(
  times: readonly ({ readonly seconds: bigint; readonly nanos: number } | undefined)[],
  time: { readonly seconds: bigint; readonly nanos: number } | undefined,
): number {
  return times.findIndex((each) => each?.seconds === time?.seconds && each?.nanos === time?.nanos);
}
