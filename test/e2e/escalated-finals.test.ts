import { RunState } from '@writ/contracts/writ/run/v1/run_pb';
import { expect, it, onTestFinished } from 'vitest';
import { startScriptedPlatform } from './scripted/scripted-platform.ts';
import { until } from './scripted/until.ts';

const AGENTS = `
agents:
  - name: lead
    kind: orchestrator
    instructions: You lead.
    model: { model: research }
    sub_agents: [{ name: writer, ask_timeout: 1h }]
  - name: writer
    kind: react
    instructions: You write.
    model: { model: research }
    on_refusal: stop
`;
const POLICY = `
policy: checked-answers
rules:
  - id: check
    match: { kind: final, agent: writer }
    decide: escalate
    reason: answers_are_checked
  - { id: all, decide: approve, reason: fine }
`;
const ENTRIES = [
  {
    when: { system_contains: 'You lead', turn: 0 },
    reply: { tool_calls: [{ name: 'handoff_writer', arguments: { task: 'Write it.' } }] },
  },
  {
    when: { system_contains: 'You lead', tool_result_contains: 'The tide turns.' },
    reply: { text: 'The writer is done.' },
  },
  {
    when: { system_contains: 'You lead', tool_result_contains: 'human_rejected' },
    reply: { text: 'The writer failed.' },
  },
  {
    when: { system_contains: 'You write', turn: 0 },
    reply: { text: 'The tide turns.' },
  },
];

/** Starts a run of the lead, and waits until the writer's answer is escalated: an approval for it is pending. */
async function startRun() {
  const platform = await startScriptedPlatform({
    agents: AGENTS,
    policy: POLICY,
    entries: ENTRIES,
  });
  onTestFinished(() => platform.close());
  const { runs, approvals } = platform.test.client;
  const { run } = await runs.startRun({ requestId: 'r-1', agent: 'lead', goal: 'Write.' });
  const runId = run?.runId ?? '';
  const approval = await until('the approval', async () => {
    const listed = await approvals.listApprovals({ runId });
    return listed.approvals[0];
  });
  expect(approval).toMatchObject({ agent: { name: 'writer' } });
  // The parent waits and has received no part of the answer.
  expect(platform.requests()).toHaveLength(2);
  const { approvalId } = approval;
  const resultOf = async () => {
    await Array.fromAsync(runs.watchRun({ runId }));
    return (await runs.getRun({ runId })).run;
  };
  return { platform, approvals, approvalId, resultOf };
}

it("a child's answer reaches its parent after a person has approved it (SV-5, AG-3)", async () => {
  const { platform, approvals, approvalId, resultOf } = await startRun();
  const answer = { case: 'approve', value: {} } as const;
  await approvals.decideApproval({ requestId: 'd-1', approvalId, answer });
  expect(await resultOf()).toMatchObject({
    state: RunState.COMPLETED,
    result: { stopReason: 'success', answer: 'The writer is done.' },
  });
  expect(platform.requests()).toHaveLength(3);
});

it("a child's answer that a person has rejected does not reach the parent (SV-5, AG-3)", async () => {
  const { approvals, approvalId, resultOf } = await startRun();
  const answer = { case: 'reject', value: {} } as const;
  await approvals.decideApproval({ requestId: 'd-1', approvalId, answer });
  expect(await resultOf()).toMatchObject({ result: { answer: 'The writer failed.' } });
});
