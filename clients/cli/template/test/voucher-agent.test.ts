import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { startTestProject, type TestProject } from '@writ/testing';

let project: TestProject;
before(async () => {
  project = await startTestProject('.');
});
after(() => project.close());

test('a voucher over 20 USD waits for a person and is issued as approved', async () => {
  const run = await project.start('voucher-agent', 'Order 7 was late.');
  const approval = await run.approval();
  assert.equal(approval.target, 'issue_voucher');
  await run.decide(approval, 'approve');
  const { stopReason, answer } = await run.result();
  assert.equal(stopReason, 'success');
  assert.match(answer, /50 USD/);
});

test('a rejected voucher is not issued', async () => {
  const run = await project.start('voucher-agent', 'Order 7 was late.');
  await run.decide(await run.approval(), 'reject');
  const { answer } = await run.result();
  assert.match(answer, /cannot send a voucher/);
});
