import { ApprovalService } from '@writ/contracts/writ/approval/v1/approval_service_pb';
import { ControlService } from '@writ/contracts/writ/control/v1/control_service_pb';
import { ExecutionMeterService } from '@writ/contracts/writ/meter/v1/execution_meter_service_pb';
import { RunState } from '@writ/contracts/writ/run/v1/run_pb';
import { SpawnBudgetService } from '@writ/contracts/writ/spawn/v1/spawn_budget_service_pb';
import { HistoryRetention, Priority } from '@writ/contracts/writ/supervision/v1/supervision_pb';
import { AgentWorkerService } from '@writ/contracts/writ/worker/v1/agent_worker_service_pb';
import { NotFoundError, UnavailableError } from '@writ/kernel';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { SupervisorUnderTest } from './supervisor-under-test.ts';

const START = { requestId: 'req-1', agent: 'worker', goal: 'Do it.' };

let supervisor: SupervisorUnderTest;

/** Waits until the root of a run has been delivered. */
async function untilRunning(runId = ''): Promise<void> {
  const stateNow = async () => (await supervisor.runs().getRun({ runId })).run?.state;
  await expect.poll(stateNow).toBe(RunState.RUNNING);
}

describe('StartRun', () => {
  beforeEach(async () => {
    supervisor = await SupervisorUnderTest.start();
  });
  afterEach(() => supervisor.close());

  it('opens pool and tab concurrently, then delivers the root with everything it needs (SUP-1, SUP-9)', async () => {
    const { fakes } = supervisor;
    const { run } = await supervisor.runs().startRun({ ...START, dataJson: '{"user_id":42}' });
    expect(run).toMatchObject({ tenant: 'acme', createdBy: 'anna', goal: 'Do it.' });
    await fakes.called(AgentWorkerService.method.deliver);
    expect(fakes.sequence.slice(0, 2).toSorted()).toEqual(['OpenPool', 'OpenTab']);
    expect(fakes.sequence.slice(2)).toEqual(['Deliver']);
    const [pool] = fakes.requests(SpawnBudgetService.method.openPool);
    expect(pool?.budget).toMatchObject({ maxAgents: 50, allowPreempt: true });
    const [tab] = fakes.requests(ExecutionMeterService.method.openTab);
    expect(tab).toMatchObject({ models: ['main'], runBudget: { maxTokens: 1000n } });
    const [delivery] = fakes.deliveries;
    expect(delivery).toMatchObject({
      tenant: 'acme',
      agent: run?.agent,
      supervision: {
        runId: run?.runId,
        depth: 0,
        executionBudget: { maxActive: { seconds: 30n } },
      },
      manifest: { name: 'worker', definitionHash: run?.definitionHash, tools: ['look', 'act'] },
      slotGrant: `grant-of-${run?.runId}`,
      message: { text: 'Do it.', dataJson: '{"user_id":42}', correlationId: run?.sessionId },
      deadline: run?.deadline,
    });
    expect(delivery?.supervision?.parent).toBeUndefined();
    expect(delivery?.credentials?.supervisorToken).not.toBe('');
  });

  it('delivers the agent again until a worker of its tenant accepts it (SYS-6)', async () => {
    const { fakes } = supervisor;
    const { deliver } = AgentWorkerService.method;
    const wrongWorker = () =>
      new UnavailableError('TENANT_NOT_SERVED', 'Another worker serves the tenant.');
    fakes.fail(deliver, ...Array.from({ length: 10 }, wrongWorker));
    const { run } = await supervisor.runs().startRun(START);
    await fakes.called(deliver, 11);
    await untilRunning(run?.runId);
    expect(new Set(fakes.deliveries.map(({ requestId }) => requestId)).size).toBe(1);
  });

  it('returns the same run for a retry, and rejects its request_id in a different request', async () => {
    const runs = supervisor.runs();
    const [first, second] = await Promise.all([runs.startRun(START), runs.startRun(START)]);
    expect(second.run?.runId).toBe(first.run?.runId);
    await expect(runs.startRun({ ...START, goal: 'Something else.' })).rejects.toMatchObject({
      reason: 'REQUEST_ID_REUSED',
      metadata: { field: 'request_id' },
    });
    const other = await supervisor.runs('boris').startRun(START);
    expect(other.run?.runId).not.toBe(first.run?.runId);
  });

  it('names the available agents when the agent does not exist', async () => {
    await expect(supervisor.runs().startRun({ ...START, agent: 'unknown' })).rejects.toMatchObject({
      kind: 'not_found',
      message: 'Agent "unknown" does not exist. Available agents: helper, slow, worker.',
    });
  });

  it('uses another model only if the manifest allows it, and opens the tab for that model only', async () => {
    const runs = supervisor.runs();
    await expect(runs.startRun({ ...START, model: 'gpt-9' })).rejects.toMatchObject({
      reason: 'MODEL_NOT_ALLOWED',
      message: 'Model gpt-9 is not allowed for worker. Allowed models: main, sim-*.',
    });
    await expect(runs.startRun({ ...START, model: 'sim-*' })).rejects.toMatchObject({
      reason: 'MODEL_NOT_ALLOWED',
      message: 'model must name one model; sim-* is a pattern.',
    });
    await runs.startRun({ ...START, model: 'sim-escalate' });
    await supervisor.fakes.called(AgentWorkerService.method.deliver);
    const [tab] = supervisor.fakes.requests(ExecutionMeterService.method.openTab);
    expect(tab?.models).toEqual(['sim-escalate']);
    expect(supervisor.fakes.deliveries[0]?.manifest?.model).toMatchObject({
      model: 'sim-escalate',
      alsoAllowed: [],
    });
  });

  it('limits the request to what the manifest allows (SUP-9)', async () => {
    const { run } = await supervisor.runs().startRun({
      ...START,
      runBudget: { maxTokens: 5000n, maxTurns: 3n },
      spawnBudget: { maxAgents: 9000 },
      priority: Priority.CRITICAL,
      retention: HistoryRetention.NONE,
    });
    expect(run).toMatchObject({
      runBudget: { maxTokens: 1000n, maxTurns: 3n },
      priority: Priority.NORMAL,
      retention: HistoryRetention.NONE,
    });
    await supervisor.fakes.called(SpawnBudgetService.method.openPool);
    const [pool] = supervisor.fakes.requests(SpawnBudgetService.method.openPool);
    expect(pool?.budget?.maxAgents).toBe(50);
  });

  it('rejects data that is not a JSON object, in one sentence that names the field (SYS-3)', async () => {
    await expect(supervisor.runs().startRun({ ...START, dataJson: '[1]' })).rejects.toMatchObject({
      kind: 'invalid_argument',
      message: 'data_json must be a JSON object.',
    });
    await expect(supervisor.runs().startRun({ ...START, goal: '' })).rejects.toMatchObject({
      kind: 'invalid_argument',
      metadata: { field: 'goal' },
    });
  });

  it('limits a session to its tenant and creator (SUP-2)', async () => {
    const session = { ...START, sessionId: 'ses-anna' };
    const { run } = await supervisor.runs().startRun(session);
    expect(run?.sessionId).toBe('ses-anna');
    const next = await supervisor.runs().startRun({ ...session, requestId: 'req-2' });
    expect(next.run?.sessionId).toBe('ses-anna');
    await expect(supervisor.runs('boris').startRun(session)).rejects.toMatchObject({
      kind: 'permission_denied',
      reason: 'SESSION_WRONG_OWNER',
    });
    await expect(supervisor.runs('eve').startRun(session)).resolves.toMatchObject({
      run: { tenant: 'rivals' },
    });
  });
});

describe('the public endpoint', () => {
  beforeEach(async () => {
    supervisor = await SupervisorUnderTest.start();
  });
  afterEach(() => supervisor.close());

  it('hides the runs of a tenant from other tenants (SYS-6)', async () => {
    const { run } = await supervisor.runs('anna').startRun(START);
    const runId = run?.runId ?? '';
    const eve = supervisor.runs('eve');
    const notFound = { kind: 'not_found', reason: 'RUN_NOT_FOUND' };
    await expect(eve.getRun({ runId })).rejects.toMatchObject(notFound);
    await expect(eve.cancelRun({ requestId: 'c', runId })).rejects.toMatchObject(notFound);
    await expect(eve.signalRun({ requestId: 's', runId, name: 'go' })).rejects.toMatchObject(
      notFound,
    );
    await expect(Array.fromAsync(eve.watchRun({ runId }))).rejects.toMatchObject(notFound);
    expect((await eve.listRuns({})).runs).toEqual([]);
    expect((await supervisor.runs('boris').getRun({ runId })).run?.runId).toBe(runId);
  });

  it('lists runs by state, agent, session and labels, in pages', async () => {
    const runs = supervisor.runs();
    const started: string[] = [];
    for (const [index, agent] of ['worker', 'helper', 'worker', 'worker'].entries()) {
      const labels = { team: index === 0 ? 'a' : 'b', even: String(index % 2 === 0) };
      const { run } = await runs.startRun({ ...START, requestId: `r-${index}`, agent, labels });
      started.push(run?.runId ?? '');
    }
    const ids = async (request: Parameters<typeof runs.listRuns>[0]) =>
      (await runs.listRuns(request)).runs.map(({ runId }) => runId);
    expect(await ids({ oldestFirst: true })).toEqual(started);
    expect(await ids({ agent: 'helper' })).toEqual([started[1]]);
    expect(await ids({ labels: { team: 'b', even: 'true' } })).toEqual([started[2]]);
    expect(await ids({ states: [RunState.COMPLETED] })).toEqual([]);
    const first = await runs.listRuns({ pageSize: 3 });
    expect(first.runs.map(({ runId }) => runId)).toEqual(started.toReversed().slice(0, 3));
    const second = await runs.listRuns({ pageSize: 3, pageToken: first.nextPageToken });
    expect(second.runs.map(({ runId }) => runId)).toEqual([started[0]]);
    expect(second.nextPageToken).toBe('');
    for (const request of [
      { pageToken: 'nonsense' },
      { pageToken: first.nextPageToken, agent: 'helper' },
    ]) {
      await expect(runs.listRuns(request)).rejects.toMatchObject({ reason: 'INVALID_PAGE_TOKEN' });
    }
  });

  it('lists the available agents', async () => {
    const { agents } = await supervisor.runs().listAgents({});
    expect(agents.map(({ name }) => name)).toEqual(['helper', 'slow', 'worker']);
    expect(agents[2]).toMatchObject({ description: 'Works.', tools: ['look', 'act'] });
    const page = await supervisor.runs().listAgents({ pageSize: 2 });
    const next = await supervisor.runs().listAgents({ pageSize: 2, pageToken: page.nextPageToken });
    expect(next.agents.map(({ name }) => name)).toEqual(['worker']);
    expect(next.nextPageToken).toBe('');
  });

  it('serves JSON over HTTP, and nothing without a key (SYS-2)', async () => {
    const post = (method: string, body: object, key?: string) =>
      fetch(`http://${supervisor.service.edgeAddress}/writ.run.v1.RunService/${method}`, {
        method: 'POST',
        headers: {
          'content-type': 'application/json',
          ...(key && { authorization: `Bearer ${key}` }),
        },
        body: JSON.stringify(body),
      });
    const started = await post('StartRun', START, supervisor.apiKey('anna'));
    expect(started.status).toBe(200);
    const { run } = (await started.json()) as { run: { runId: string; tenant: string } };
    expect(run.tenant).toBe('acme');
    expect((await post('GetRun', { runId: run.runId })).status).toBe(401);
  });

  it('enforces the roles of people (SYS-6)', async () => {
    await expect(supervisor.as('boris', ApprovalService).listApprovals({})).rejects.toMatchObject({
      reason: 'ROLE_REQUIRED',
    });
    await expect(supervisor.as('dora', ControlService).listHalts({})).rejects.toMatchObject({
      reason: 'ROLE_REQUIRED',
    });
    expect((await supervisor.as('anna', ControlService).listHalts({})).halts).toEqual([]);
  });

  it('forwards a signal of a client to the worker, but rejects reserved signal names', async () => {
    const { run } = await supervisor.runs().startRun(START);
    await untilRunning(run?.runId);
    const signal = { requestId: 's-1', runId: run?.runId ?? '', name: 'human_reply:q1' };
    expect(await supervisor.runs().signalRun({ ...signal, payloadJson: '{}' })).toMatchObject({
      accepted: true,
    });
    const [sent] = supervisor.fakes.requests(AgentWorkerService.method.signal);
    expect(sent).toMatchObject({ agentInstance: run?.agent?.instance, name: 'human_reply:q1' });
    for (const name of ['approval:op-1', 'halted', 'resumed']) {
      await expect(supervisor.runs().signalRun({ ...signal, name })).rejects.toMatchObject({
        reason: 'SIGNAL_RESERVED',
      });
    }
  });

  it('tells the client to retry a signal that is sent before the agent is delivered (RT-3)', async () => {
    const { run } = await supervisor.runs().startRun(START);
    const { signal: method } = AgentWorkerService.method;
    supervisor.fakes.fail(method, new NotFoundError('AGENT_NOT_FOUND', 'There is no such agent.'));
    const signal = { requestId: 's-1', runId: run?.runId ?? '', name: 'human_reply:q1' };
    await expect(supervisor.runs().signalRun(signal)).rejects.toMatchObject({
      kind: 'unavailable',
      reason: 'AGENT_NOT_DELIVERED',
      metadata: { run_id: run?.runId, agent: run?.agent?.instance },
    });
    await untilRunning(run?.runId);
    expect(await supervisor.runs().signalRun(signal)).toMatchObject({ accepted: true });
  });
});
