import type { ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { ApprovalState } from '@writ/contracts/writ/approval/v1/approval_pb';
import { ApprovalService } from '@writ/contracts/writ/approval/v1/approval_service_pb';
import { ReviewService } from '@writ/contracts/writ/review/v1/review_service_pb';
import { ToolGatewayService } from '@writ/contracts/writ/tool/v1/tool_gateway_service_pb';
import { AgentWorkerService } from '@writ/contracts/writ/worker/v1/agent_worker_service_pb';
import { isWritError } from '@writ/kernel';
import type { RpcClient } from '@writ/rpc';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { refund } from './refund-harness.ts';
import { refundTools } from './refund-tools.ts';
import { SupervisorUnderTest } from './supervisor-under-test.ts';

const RUNS = 10;
const CALLS = 20;

const AGENTS = `
agents:
  - name: asker
    kind: json-action
    model: { model: main }
    tools: [issue_refund]
    limits: { max_steps: 100 }
`;
const POLICY = `
policy: ask-always
rules:
  - { id: ask, match: { tool: issue_refund }, decide: escalate, reason: ask_first }
  - { id: fine, match: { tool: issue_refund }, decide: approve, reason: approved_by_human }
`;
const ANSWERS = {
  anna: { case: 'approve', value: {} },
  dora: { case: 'reject', value: {} },
} as const;
type Decider = keyof typeof ANSWERS;

/** The reported decider; undefined when the process was killed before it answered. */
type ReportedDecider = string | undefined;

describe('approvals that are pending when the supervisor is killed', () => {
  let supervisor: SupervisorUnderTest;
  let child: ChildProcess | undefined;
  beforeEach(async () => {
    supervisor = await SupervisorUnderTest.start({
      config: {
        agents: { text: AGENTS, file: 'agents.yaml' },
        policy: { text: POLICY, file: 'policy.yaml' },
      },
    });
    const listed = { registryVersion: 'v1', tools: refundTools() };
    supervisor.fakes.answer(ToolGatewayService.method.listTools, () => listed);
    await supervisor.stop();
  });
  afterEach(async () => {
    child?.kill('SIGKILL');
    await supervisor.close();
  });

  const startProcess = async () => {
    const process = await supervisor.spawnProcess({ agents: AGENTS, policy: POLICY });
    child = process.child;
    return process;
  };

  const kill = async () => {
    child?.kill('SIGKILL');
    if (child?.exitCode === null && child.signalCode === null) await once(child, 'exit');
  };

  /** Starts ten runs that propose twenty escalated actions each; returns the approval ids. */
  const escalate = async (address: string, edgeAddress: string): Promise<string[]> => {
    const { fakes } = supervisor;
    const runs = supervisor.runs('boris', edgeAddress);
    for (let run = 0; run < RUNS; run += 1) {
      await runs.startRun({ requestId: `start-${run}`, agent: 'asker', goal: 'Ask.' });
    }
    await fakes.called(AgentWorkerService.method.deliver, RUNS);
    const worker = fakes.peer('agent-worker');
    const reviews = worker.client(ReviewService, { audience: 'supervisor', address });
    const proposals = fakes.deliveries.map(async ({ tenant, supervision, agent, credentials }) => {
      const { runId = '' } = supervision ?? {};
      const holder = { tenant, runId, agentInstance: agent?.instance ?? '', epoch: 1n };
      const slotGrant = await fakes.peer('spawn-budget').slotGrant(holder, 600_000);
      const agentToken = credentials?.supervisorToken ?? '';
      const ids: string[] = [];
      for (let call = 0; call < CALLS; call += 1) {
        const request = { ...refund(10 + call), callId: `op-${call}` };
        const { decision } = await reviews.reviewAction(request, {
          agentToken,
          slotGrant,
          epoch: 1n,
        });
        ids.push(decision?.approvalId ?? '');
      }
      return ids;
    });
    const ids = (await Promise.all(proposals)).flat();
    reviews.close();
    return ids;
  };

  const pendingAt = async (edgeAddress: string): Promise<string[]> => {
    const approvals = supervisor.as('dora', ApprovalService, edgeAddress);
    const ids: string[] = [];
    let pageToken = '';
    do {
      const filter = { states: [ApprovalState.PENDING], pageSize: 75, pageToken };
      const page = await approvals.listApprovals(filter);
      ids.push(...page.approvals.map(({ approvalId }) => approvalId));
      pageToken = page.nextPageToken;
    } while (pageToken !== '');
    return ids;
  };

  /** One connection per person and process. */
  const clients = new Map<string, RpcClient<typeof ApprovalService>>();
  const clientOf = (who: Decider, edgeAddress: string) => {
    const name = `${who} ${edgeAddress}`;
    const client = clients.get(name) ?? supervisor.as(who, ApprovalService, edgeAddress);
    clients.set(name, client);
    return client;
  };

  /** Decides an approval as a person; returns the reported decider and whether this decision won. */
  const answer = async (
    edgeAddress: string,
    who: Decider,
    approvalId: string,
  ): Promise<readonly [ReportedDecider, boolean]> => {
    const request = { approvalId, requestId: `${who}-${approvalId}`, answer: ANSWERS[who] };
    try {
      const { approval } = await clientOf(who, edgeAddress).decideApproval(request);
      return [approval?.humanApproval?.decidedBy, true];
    } catch (error) {
      if (!isWritError(error)) throw error;
      if (error.reason !== 'APPROVAL_DECIDED') return [undefined, false];
      return [error.metadata.decided_by, false];
    }
  };
  it('survive a kill (200 approvals), and each is decided once when two people race (SV-5, SYS-4)', async () => {
    const first = await startProcess();
    const approvalIds = await escalate(first.address, first.edgeAddress);
    expect(new Set(approvalIds).size).toBe(RUNS * CALLS);
    await kill();

    const second = await startProcess();
    expect((await pendingAt(second.edgeAddress)).toSorted()).toEqual(approvalIds.toSorted());
    const outcomes = new Map<string, { reported: ReportedDecider[]; won: Decider[] }>(
      approvalIds.map((id) => [id, { reported: [], won: [] }]),
    );
    const record = async (edgeAddress: string, who: Decider, id: string) => {
      const [decidedBy, isOwn] = await answer(edgeAddress, who, id);
      if (decidedBy !== undefined) outcomes.get(id)?.reported.push(decidedBy);
      if (isOwn) outcomes.get(id)?.won.push(who);
    };
    // Both people decide concurrently; the process is killed half-way.
    const race = (edgeAddress: string, ids: readonly string[]) =>
      ids.flatMap((id, index) => {
        const both: readonly Decider[] = index % 2 === 0 ? ['anna', 'dora'] : ['dora', 'anna'];
        return both.map((who) => record(edgeAddress, who, id));
      });
    const half = approvalIds.length / 2;
    await Promise.all(race(second.edgeAddress, approvalIds.slice(0, half)));
    const interrupted = Promise.all(race(second.edgeAddress, approvalIds.slice(half)));
    await Promise.race([
      interrupted,
      supervisor.fakes.called(AgentWorkerService.method.signal, half + 5),
    ]);
    await kill();
    await interrupted;

    await supervisor.restart();
    const { edgeAddress } = supervisor.service;
    await Promise.all(race(edgeAddress, approvalIds.slice(half)));
    expect(await pendingAt(edgeAddress)).toEqual([]);
    const approvals = supervisor.as('dora', ApprovalService, edgeAddress);
    for (let at = 0, pageToken = ''; at < approvalIds.length; ) {
      const page = await approvals.listApprovals({ pageSize: 100, pageToken });
      pageToken = page.nextPageToken;
      at += page.approvals.length;
      for (const { approvalId, state, humanApproval } of page.approvals) {
        const decidedBy = humanApproval?.decidedBy ?? '';
        const outcome = outcomes.get(approvalId);
        // Every answer before and after the kill reported the same decider.
        expect(new Set(outcome?.reported)).toEqual(new Set([decidedBy]));
        expect(new Set(outcome?.won)).toEqual(new Set([decidedBy]));
        expect(state).toBe(decidedBy === 'anna' ? ApprovalState.APPROVED : ApprovalState.REJECTED);
      }
    }
  });
});
