import { Client as OldClient } from '@modelcontextprotocol/sdk/client/index.js';
import { StreamableHTTPClientTransport as OldTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import { ApprovalState } from '@writ/contracts/writ/approval/v1/approval_pb';
import { newId } from '@writ/kernel';
import type { TestPlatform } from '@writ/testing/platform';
import { expect, it, onTestFinished, vi } from 'vitest';
import { runCommand } from '../../clients/cli/test/command.ts';
import { counter } from '../agent-proxy/counter-tools.ts';
import {
  connect,
  counterPlatform,
  type McpRun,
  MovedClock,
  pendingApproval,
  postModern,
  startMcpRun,
} from '../agent-proxy/mcp-run.ts';

const ASK = { name: 'wipe_disk', arguments: { disk: 'ask' } };
const APPROVE = { case: 'approve', value: {} } as const;
const TASKS = { 'io.modelcontextprotocol/tasks': {} };
const TEN_MINUTES = 10 * 60_000;

/** Starts a platform and a run; the test advances the clock of agent-proxy. */
async function waitingPlatform() {
  const clock = new MovedClock();
  const systemClock = { now: () => new Date(), monotonicMs: () => performance.now() };
  const test = await counterPlatform({
    clockOf: (service) => (service === 'agent-proxy' ? clock : systemClock),
  });
  return { test, clock, run: await startMcpRun(test) };
}

async function decide({ client }: TestPlatform, runId: string, answer: 'approve' | 'reject') {
  const { approvalId } = await pendingApproval({ client } as TestPlatform, runId);
  await client.approvals.decideApproval({
    requestId: newId('req'),
    approvalId,
    answer: { case: answer, value: {} },
    comment: 'Because.',
  });
  return approvalId;
}

async function connectOld({ url, token }: McpRun): Promise<OldClient> {
  const client = new OldClient({ name: 'old-client', version: '1.0.0' });
  const requestInit = { headers: { authorization: `Bearer ${token}` } };
  const transport = new OldTransport(url, { requestInit });
  await client.connect(transport as Parameters<OldClient['connect']>[0]);
  onTestFinished(() => client.close());
  return client;
}

it('ends a wait after ten minutes with instructions to repeat the call; repeats attach to the approval, and the call is executed once (AP-4)', async () => {
  const { test, clock, run } = await waitingPlatform();
  const client = await connectOld(run);
  const first = client.callTool(ASK);
  const { approvalId } = await pendingApproval(test, run.runId);
  const pending = await clock.advanceUntil(first, TEN_MINUTES);
  expect(pending).toMatchObject({
    isError: true,
    _meta: { 'io.writ/pending': { approval: approvalId } },
  });
  expect(JSON.stringify(pending.content)).toMatch(/Not executed yet.*exactly the same arguments/);
  expect(counter.runs).toBe(0);
  await decide(test, run.runId, 'approve');
  const answers = await Promise.all([client.callTool(ASK), client.callTool(ASK)]);
  expect(answers.map(({ structuredContent }) => structuredContent)).toEqual([
    { wiped: 1 },
    { wiped: 1 },
  ]);
  expect(counter.runs).toBe(1);
  const { approvals } = await test.client.approvals.listApprovals({ runId: run.runId });
  expect(approvals).toHaveLength(1);
});

it('makes a client of 2026-07-28 repeat its request automatically while the call waits for a person (AP-4)', async () => {
  const { test, clock, run } = await waitingPlatform();
  const client = await connect(run);
  const answer = client.callTool(ASK);
  await pendingApproval(test, run.runId);
  const stop = setInterval(() => clock.advance(60_000), 100);
  onTestFinished(() => clearInterval(stop));
  // After nine repeats and a last wait, the client gets the same answer as a client without support for waiting.
  expect(await answer).toMatchObject({ isError: true });
  clearInterval(stop);
  const again = client.callTool(ASK);
  await decide(test, run.runId, 'approve');
  expect((await again).structuredContent).toEqual({ wiped: 1 });
  expect(counter.runs).toBe(1);
});

it('accepts a requestState only once, from the same agent and for the same call (AP-4, SYS-6)', async () => {
  const { test, clock, run } = await waitingPlatform();
  const other = await startMcpRun(test);
  const attempt = async (params: Record<string, unknown> = {}, from = run) => {
    const answer = postModern(from, 'tools/call', { ...ASK, ...params });
    const isAnswered = answer.then(() => true);
    // Advances the clock by one minute every 100 ms, so that the wait ends.
    const timer = setInterval(() => clock.advance(60_000), 100);
    await isAnswered;
    clearInterval(timer);
    const { result, error } = await answer;
    return { state: String(result?.requestState ?? ''), error };
  };
  const { state } = await attempt();
  expect(state).toMatch(/^[0-9a-f]{32}$/);
  const message = 'requestState is invalid, used or expired. Repeat the call without it.';
  const invalid = { error: { code: -32_602, message } };
  expect(await attempt({ requestState: state }, other)).toMatchObject(invalid);
  expect(await attempt({ requestState: `${state.slice(1)}0` })).toMatchObject(invalid);
  const next = await attempt({ requestState: state });
  expect(next.state).toMatch(/^[0-9a-f]{32}$/);
  expect(await attempt({ requestState: state })).toMatchObject(invalid);
  const changed = { requestState: next.state, arguments: { disk: 'other' } };
  expect(await attempt(changed)).toMatchObject(invalid);
  expect(counter.runs).toBe(0);
});

it('creates a task for a client that supports tasks, and executes its call on approval without a further request (AP-4)', async () => {
  const { test, clock, run } = await waitingPlatform();
  const other = await startMcpRun(test);
  const call = postModern(run, 'tools/call', ASK, { extensions: TASKS });
  const { approvalId } = await pendingApproval(test, run.runId);
  const { result } = await clock.advanceUntil(call, TEN_MINUTES);
  expect(result).toMatchObject({
    resultType: 'task',
    status: 'working',
    statusMessage: `Waiting for approval ${approvalId} of wipe_disk.`,
  });
  const taskId = String(result?.taskId);
  const get = async (from = run, id = taskId) =>
    await postModern(from, 'tasks/get', { taskId: id }, { extensions: TASKS });
  expect((await get()).result).toMatchObject({ status: 'working', taskId });
  const unknown = { code: -32_602, message: expect.stringContaining('The task does not exist') };
  expect((await get(other)).error).toMatchObject(unknown);
  expect((await get(run, 'f'.repeat(32))).error).toMatchObject(unknown);
  expect((await get(run, 'x')).error?.code).toBe(-32_602);
  await decide(test, run.runId, 'approve');
  await vi.waitFor(() => expect(counter.runs).toBe(1));
  const done = await vi.waitFor(async () => {
    const { result: shown } = await get();
    expect(shown).toMatchObject({ status: 'completed' });
    return shown;
  });
  expect(done).toMatchObject({
    result: { structuredContent: { wiped: 1 }, _meta: { 'io.writ/receipt': expect.any(String) } },
  });
  expect((await get()).result).toMatchObject({ status: 'completed' });
  expect(counter.runs).toBe(1);
});

it('executes nothing for a cancelled task, and ends a rejected task with the reason (AP-4)', async () => {
  const { test, clock, run } = await waitingPlatform();
  const begin = async () => {
    const call = postModern(run, 'tools/call', ASK, { extensions: TASKS });
    await pendingApproval(test, run.runId);
    return String((await clock.advanceUntil(call, TEN_MINUTES)).result?.taskId);
  };
  const requestTask = async (method: string, taskId: string) =>
    (await postModern(run, method, { taskId }, { extensions: TASKS })).result;
  const cancelled = await begin();
  const { approvalId } = await pendingApproval(test, run.runId);
  // An equal call without a task attaches to the same approval; its first progress message shows that it waits.
  const waits = Promise.withResolvers<void>();
  const attached = (await connectOld(run)).callTool(ASK, undefined, {
    onprogress: () => waits.resolve(),
  });
  await waits.promise;
  await requestTask('tasks/cancel', cancelled);
  expect(await requestTask('tasks/get', cancelled)).toMatchObject({ status: 'cancelled' });
  expect(await attached).toMatchObject({
    isError: true,
    content: [{ text: 'Nothing was executed. The client withdrew wipe_disk.' }],
    _meta: { 'io.writ/reason': 'withdrawn' },
  });
  const approve = { requestId: newId('req'), approvalId, answer: APPROVE };
  await expect(test.client.approvals.decideApproval(approve)).rejects.toMatchObject({
    reason: 'APPROVAL_DECIDED',
    message: expect.stringMatching(/was withdrawn at .*, by its agent\.$/),
  });
  const { out } = await runCommand(test, ['approvals', 'list', '--run', run.runId, '--all']);
  expect(out[1]).toMatch(new RegExp(`^${approvalId} +withdrawn `));
  const rejected = await begin();
  expect(await requestTask('tasks/get', cancelled)).toMatchObject({ status: 'cancelled' });
  await decide(test, run.runId, 'reject');
  await vi.waitFor(async () => {
    expect(await requestTask('tasks/get', rejected)).toMatchObject({
      status: 'completed',
      result: {
        isError: true,
        content: [{ text: expect.stringMatching(/^Nothing was executed.*a person.*Because\.$/) }],
        _meta: { 'io.writ/reason': 'human_rejected' },
      },
    });
  });
  expect(counter.runs).toBe(0);
});

it('either executes or withdraws the call of a task that is cancelled and approved concurrently (AP-4)', async () => {
  const { test, clock } = await waitingPlatform();
  for (let race = 0; race < 6; race += 1) {
    // Starts a new run each time, because a second equal call in one run would be refused as a repetition.
    const run = await startMcpRun(test);
    const before = counter.runs;
    const call = postModern(run, 'tools/call', ASK, { extensions: TASKS });
    const { approvalId } = await pendingApproval(test, run.runId);
    const { result } = await clock.advanceUntil(call, TEN_MINUTES);
    const taskId = String(result?.taskId);
    const requestTask = (method: string) =>
      postModern(run, method, { taskId }, { extensions: TASKS });
    const [answered] = await Promise.allSettled([
      test.client.approvals.decideApproval({
        requestId: newId('req'),
        approvalId,
        answer: APPROVE,
      }),
      requestTask('tasks/cancel'),
    ]);
    const isApproved = answered.status === 'fulfilled';
    await vi.waitFor(async () => {
      const { result } = await requestTask('tasks/get');
      expect(result).toMatchObject({ status: isApproved ? 'completed' : 'cancelled' });
    });
    expect(counter.runs - before).toBe(isApproved ? 1 : 0);
    const { approval } = await test.client.approvals.getApproval({ approvalId });
    expect(approval?.state).toBe(isApproved ? ApprovalState.APPROVED : ApprovalState.WITHDRAWN);
  }
});

it('reports the progress of a wait to a client that asks for it (AP-4)', async () => {
  const { test, run } = await waitingPlatform();
  const client = await connectOld(run);
  const messages: (string | undefined)[] = [];
  const call = client.callTool(ASK, undefined, {
    onprogress: ({ message }) => messages.push(message),
  });
  const { approvalId } = await pendingApproval(test, run.runId);
  await vi.waitFor(() =>
    expect(messages).toContain(`Waiting for approval ${approvalId} of wipe_disk.`),
  );
  await decide(test, run.runId, 'approve');
  expect((await call).structuredContent).toEqual({ wiped: 1 });
});

it('keeps the approval of a client that disconnected, and returns the result to its next equal call (AP-4)', async () => {
  const { test, run } = await waitingPlatform();
  const leaving = new AbortController();
  const first = postModern(run, 'tools/call', ASK, { signal: leaving.signal });
  const { approvalId } = await pendingApproval(test, run.runId);
  leaving.abort();
  await expect(first).rejects.toThrow();
  expect(await decide(test, run.runId, 'approve')).toBe(approvalId);
  expect(counter.runs).toBe(0);
  // The client disconnects again while the tool runs; the execution continues.
  const { promise, resolve } = Promise.withResolvers<void>();
  counter.gate = promise;
  const again = new AbortController();
  const second = postModern(run, 'tools/call', ASK, { signal: again.signal });
  await vi.waitFor(() => expect(counter.runs).toBe(1));
  again.abort();
  await expect(second).rejects.toThrow();
  resolve();
  const { result } = await postModern(run, 'tools/call', ASK);
  expect(result).toMatchObject({ structuredContent: { wiped: 1 } });
  expect(counter.runs).toBe(1);
});

it('executes nothing while the run is halted, and the call once after the halt is lifted (AP-4, SV-9)', async () => {
  const { test, clock, run } = await waitingPlatform();
  const client = await connectOld(run);
  const first = client.callTool(ASK);
  await pendingApproval(test, run.runId);
  const { halt } = await test.client.control.halt({
    requestId: newId('req'),
    scope: { kind: { case: 'run', value: { tenant: 'default', runId: run.runId } } },
    reason: 'It must stop.',
  });
  expect(await clock.advanceUntil(first, TEN_MINUTES)).toMatchObject({ isError: true });
  expect(await client.callTool(ASK)).toMatchObject({
    isError: true,
    _meta: { 'io.writ/reason': expect.stringMatching(/^(halted|frozen)$/) },
  });
  await test.client.control.resume({ requestId: newId('req'), haltId: halt?.haltId ?? '' });
  await decide(test, run.runId, 'approve');
  await vi.waitFor(async () => {
    expect(await client.callTool(ASK)).toMatchObject({ structuredContent: { wiped: 1 } });
  });
  expect(counter.runs).toBe(1);
});

it('identifies a call by the id that the client chose, even after its result was received, and rejects a malformed id (AP-4)', async () => {
  const test = await counterPlatform();
  const client = await connect(await startMcpRun(test));
  const wipe = (id: unknown, disk = 'sda') =>
    client.callTool({ ...ASK, arguments: { disk }, _meta: { 'io.writ/call_id': id } });
  const first = await wipe('wipe-1');
  expect(first).toMatchObject({ structuredContent: { wiped: 1 } });
  expect(await wipe('wipe-1')).toMatchObject({
    structuredContent: { wiped: 1 },
    _meta: { 'io.writ/replayed': true },
  });
  expect(counter.runs).toBe(1);
  expect(await wipe('wipe-1', 'sdb')).toMatchObject({
    isError: true,
    _meta: { 'io.writ/reason': 'call_id_reused' },
  });
  for (const id of ['Wipe-2', '', 'x'.repeat(65), 2]) {
    await expect(wipe(id)).rejects.toThrow(/_meta\["io\.writ\/call_id"\] must consist of 1 to 64/);
  }
  expect(counter.runs).toBe(1);
  await wipe('wipe-2', 'sdb');
  expect(counter.runs).toBe(2);
});
