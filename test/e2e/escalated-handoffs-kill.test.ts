import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { ApprovalState } from '@writ/contracts/writ/approval/v1/approval_pb';
import { HookEventType } from '@writ/contracts/writ/hook/v1/hook_event_pb';
import { RunState } from '@writ/contracts/writ/run/v1/run_pb';
import { afterAll, beforeAll, expect, it, vi } from 'vitest';
import { type ServedPlatform, servePlatform } from './served-platform.ts';

/** Escalates the handoffs to two specialists, which the lead makes in one turn. */
const POLICY = `
policy: asked-first
rules:
  - id: specialists
    match: { kind: delegation, target: [historian, analyst] }
    decide: escalate
    reason: costs_time
  - { id: all, decide: approve, reason: fine }
`;

let dataDir: string;
let platform: ServedPlatform;

function serve(): Promise<ServedPlatform> {
  return servePlatform(dataDir, 'research-team', {
    WRIT_POLICY_FILE: join(dataDir, 'policy.yaml'),
  });
}

beforeAll(async () => {
  dataDir = mkdtempSync(join(tmpdir(), 'writ-handoffs-'));
  writeFileSync(join(dataDir, 'policy.yaml'), POLICY);
  platform = await serve();
});
afterAll(async () => {
  await platform.kill();
  rmSync(dataDir, { recursive: true, force: true });
});

/** The pending approval of a handoff to this agent. */
async function approvalFor(runId: string, target: string) {
  return await vi.waitFor(
    async () => {
      const { approvals } = await platform.client.approvals.listApprovals({ runId });
      const found = approvals.find(
        ({ action }) => action?.kind.case === 'delegation' && action.kind.value.agent === target,
      );
      if (found === undefined) throw new Error(`There is no approval for ${target} yet.`);
      return found;
    },
    { timeout: 30_000, interval: 50 },
  );
}

async function replyAsHuman(runId: string): Promise<void> {
  const { runs } = platform.client;
  for await (const { event } of runs.watchRun({ runId })) {
    if (event?.entry.case !== 'hook') continue;
    const { type, agent, waitingFor: name } = event.entry.value;
    if (type !== HookEventType.STEP_START || agent === undefined) continue;
    if (!name.startsWith('human_reply:')) continue;
    const payloadJson = JSON.stringify({ text: 'It is for visitors of a mill.' });
    const signal = { runId, agentInstance: agent.instance, name, payloadJson };
    await runs.signalRun({ ...signal, requestId: 'person' });
    return;
  }
}

it('delegates to the approved but not the rejected agent, even after kill -9 (AG-3, SV-5, RT-1)', async () => {
  const { run: started } = await platform.client.runs.startRun({
    requestId: 'brief',
    agent: 'research-lead',
    goal: 'Write a brief on tidal mills.',
  });
  const runId = started?.runId ?? '';
  const historian = await approvalFor(runId, 'historian');
  const analyst = await approvalFor(runId, 'analyst');
  expect([historian.state, analyst.state]).toEqual([ApprovalState.PENDING, ApprovalState.PENDING]);
  await platform.client.approvals.decideApproval({
    requestId: 'no',
    approvalId: analyst.approvalId,
    answer: { case: 'reject', value: {} },
  });
  await platform.kill();
  platform = await serve();
  await platform.client.approvals.decideApproval({
    requestId: 'yes',
    approvalId: historian.approvalId,
    answer: { case: 'approve', value: {} },
  });
  await replyAsHuman(runId);
  const { runs } = platform.client;
  await Array.fromAsync(runs.watchRun({ runId }));
  const { run } = await runs.getRun({ runId });
  expect(run?.state).toBe(RunState.COMPLETED);
  expect(run?.result?.answer).toContain('is published as number 1');
  const ofLead = run?.result?.trace.filter(({ agent }) => agent?.name === 'research-lead') ?? [];
  const handoffs = ofLead.filter(({ tool }) => tool !== 'final');
  expect(
    handoffs
      .map(({ tool, ok, stopReason, humanApproved }) => [tool, ok, stopReason, humanApproved])
      .toSorted(),
  ).toEqual([
    ['handoff_analyst', false, 'human_rejected', false],
    ['handoff_historian', true, '', true],
    ['handoff_person-at-desk', true, '', undefined],
    ['handoff_writer', true, '', undefined],
  ]);
}, 90_000);
