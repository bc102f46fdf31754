import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { createWritClient } from '@writ/client';
import { ApprovalState } from '@writ/contracts/writ/approval/v1/approval_pb';
import { expect, it } from 'vitest';
import { spawnProgram, tempFolder } from './program.ts';

it('leaves approvals in runs of other callers to a person, even with --exit and after a restart (SV-5)', async () => {
  const dataDir = tempFolder();
  const first = spawnProgram('main.ts', ['--no-demo'], { dataDir });
  const client = clientOf(await first.printed(/Stop with Ctrl-C/), dataDir);
  const { run } = await client.runs.startRun({
    requestId: 'other',
    agent: 'refund-worker',
    goal: 'Refund user 42.',
  });
  const { approvalId } = await pendingApproval(client);
  first.child.kill('SIGKILL');
  await first.ended;

  const second = await spawnProgram('main.ts', ['--exit'], { dataDir }).ended;
  expect(second.stdout).toContain('Unfinished runs of other callers continue: 1.');
  expect(second.stdout).toMatch(/approved .* by demo:simulated/);
  expect(second.code).toBe(0);

  const third = spawnProgram('main.ts', ['--no-demo'], { dataDir });
  const { approvals } = clientOf(await third.printed(/Stop with Ctrl-C/), dataDir);
  const all = (await approvals.listApprovals({})).approvals;
  expect(all.map((one) => [one.runCreatedBy, one.state, one.humanApproval?.decidedBy])).toEqual([
    ['demo', ApprovalState.APPROVED, 'demo:simulated'],
    ['developer', ApprovalState.PENDING, undefined],
  ]);
  expect(all[1]).toMatchObject({ approvalId, runId: run?.runId });
});

it('cancels the prompt when another approver decides the approval (SV-5, PE-2)', async () => {
  const dataDir = tempFolder();
  // A pipe that stays open: the question is never answered here.
  const program = spawnProgram('main.ts', ['--exit', '--human', 'ask'], { dataDir, input: 'open' });
  const client = clientOf(await program.printed(/for a person/), dataDir);
  const { approvalId } = await pendingApproval(client);
  await client.approvals.decideApproval({
    requestId: 'no',
    approvalId,
    answer: { case: 'reject', value: {} },
  });
  const { code, stdout } = await program.ended;
  expect(stdout).toMatch(/human_rejected \(human_approval\)/);
  expect(code).toBe(1);
});

type Client = ReturnType<typeof createWritClient>;

function clientOf(stdout: string, dataDir: string): Client {
  const [, baseUrl = ''] = /public {4}(http:\S+)/.exec(stdout) ?? [];
  return createWritClient({
    baseUrl,
    apiKey: readFileSync(join(dataDir, 'dev-api-key'), 'utf8').trim(),
  });
}

/** The first approval that opens. */
async function pendingApproval({ approvals }: Client) {
  for await (const { approval } of approvals.watchApprovals({})) {
    if (approval?.state === ApprovalState.PENDING) return approval;
  }
  throw new Error('The watch ended without an approval.');
}
