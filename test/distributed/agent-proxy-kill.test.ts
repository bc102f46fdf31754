import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { newId } from '@writ/kernel';
import {
  type DistributedPlatform,
  isDistributedPlatformAvailable,
  startDistributedPlatform,
} from '@writ/testing/distributed';
import { afterAll, beforeAll, beforeEach, describe, expect, it, vi } from 'vitest';
import {
  connect,
  counterFiles,
  type McpRun,
  pendingApproval,
  postModern,
} from '../agent-proxy/mcp-run.ts';
import { EXECUTIONS_FILE, executionsIn } from './executions.ts';

const PATIENT = { timeout: 60_000 };
const ASK = { name: 'wipe_disk', arguments: { disk: 'ask' } };
const TASKS = { 'io.modelcontextprotocol/tasks': {} };
const RECEIPT = { 'io.writ/receipt': expect.stringMatching(/^[\w-]+\.[\w-]+\.[\w-]+$/) };

describe.skipIf(!isDistributedPlatformAvailable())('two replicas of agent-proxy', () => {
  const folder = mkdtempSync(join(tmpdir(), 'writ-agent-proxy-'));
  const executions = join(folder, 'executions');
  let platform: DistributedPlatform;

  beforeAll(async () => {
    const files = counterFiles(join(import.meta.dirname, 'executions.ts'));
    const env: Record<string, string> = { [EXECUTIONS_FILE]: executions };
    for (const [variable, content] of Object.entries(files)) {
      env[variable] = join(folder, `${variable}.yaml`);
      writeFileSync(env[variable], content);
    }
    const one = { supervisor: 1, 'spawn-budget': 1, 'execution-meter': 1 };
    const replicas = { ...one, 'tool-gateway': 1, 'agent-worker': 1, 'agent-proxy': 2 };
    platform = await startDistributedPlatform({ replicas, env });
  });

  beforeEach(async () => {
    const first = platform.replica('agent-proxy-0');
    if (!first.isUp) await first.start();
  });

  afterAll(async () => {
    await platform?.close();
    rmSync(folder, { recursive: true, force: true });
  });

  /** Starts a run of an external agent; returns its MCP endpoint at each replica. */
  async function startRun(): Promise<readonly [McpRun, McpRun]> {
    const { runs } = platform.client;
    const start = { requestId: newId('req'), agent: 'refund-bot', goal: 'Answer ticket 4711.' };
    const runId = (await runs.startRun(start)).run?.runId ?? '';
    const { token } = await runs.issueRunToken({ runId });
    const [first = '', second = ''] = platform.endpointUrls;
    const at = (url: string) => ({ runId, token, url: new URL('/mcp', url) });
    const listed = async () => {
      const { status } = await postModern(at(first), 'tools/list', {});
      expect(status).toBe(200);
    };
    // Until the run is delivered, the endpoint answers 503.
    await vi.waitFor(listed, PATIENT);
    return [at(first), at(second)];
  }

  async function approve(runId: string): Promise<string> {
    const { approvalId } = await pendingApproval(platform, runId);
    await platform.client.approvals.decideApproval({
      requestId: newId('req'),
      approvalId,
      answer: { case: 'approve', value: {} },
    });
    return approvalId;
  }

  async function approvalsOf(runId: string): Promise<number> {
    return (await platform.client.approvals.listApprovals({ runId })).approvals.length;
  }

  it('execute a call once, and answer its repeat, when a replica dies before the approval (AP-4, CO-1)', async () => {
    const before = executionsIn(executions).length;
    const [first, second] = await startRun();
    const lost = (await connect(first, 'legacy')).callTool(ASK);
    const isLost = expect(lost).rejects.toThrow();
    const { approvalId } = await pendingApproval(platform, first.runId);
    await platform.replica('agent-proxy-0').kill();
    await isLost;
    const repeat = (await connect(second, 'legacy')).callTool(ASK);
    expect(await approve(first.runId)).toBe(approvalId);
    const wiped = { structuredContent: { wiped: before + 1 }, _meta: RECEIPT };
    expect(await repeat).toMatchObject(wiped);
    expect(executionsIn(executions)).toHaveLength(before + 1);
    expect(await approvalsOf(first.runId)).toBe(1);
    expect(platform.replicas.flatMap(({ crashes }) => crashes)).toEqual([]);
  });

  it('execute the call of an approved task once, even if the replica that created it died (AP-4, CO-1)', async () => {
    const before = executionsIn(executions).length;
    const [first, second] = await startRun();
    const extensions = { extensions: TASKS };
    const { result } = await postModern(first, 'tools/call', ASK, extensions);
    expect(result).toMatchObject({ resultType: 'task', status: 'working' });
    const taskId = String(result?.taskId);
    await platform.replica('agent-proxy-0').kill();
    await approve(first.runId);
    // The call is executed without a request from a client.
    await vi.waitFor(() => expect(executionsIn(executions)).toHaveLength(before + 1), PATIENT);
    const shown = await vi.waitFor(async () => {
      const task = await postModern(second, 'tasks/get', { taskId }, extensions);
      expect(task.result).toMatchObject({ status: 'completed' });
      return task.result;
    }, PATIENT);
    const answer = { structuredContent: { wiped: before + 1 }, _meta: RECEIPT };
    expect(shown).toMatchObject({ result: answer });
    expect(executionsIn(executions)).toHaveLength(before + 1);
    expect(await approvalsOf(first.runId)).toBe(1);
  });
});
