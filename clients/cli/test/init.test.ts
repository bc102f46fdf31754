import { join } from 'node:path';
import { startTestProject } from '@writ/testing/platform';
import { describe, expect, it, onTestFinished } from 'vitest';
import { createProject, writ } from './project-folder.ts';

describe('writ init', () => {
  it('writes a project whose agent issues a voucher only after an approval (PE-3)', async () => {
    const { folder } = await createProject();
    const project = await startTestProject(folder);
    onTestFinished(() => project.close());
    const approved = await project.start('voucher-agent', 'Order 7 was late.');
    const approval = await approved.approval();
    expect(approval).toMatchObject({ target: 'issue_voucher', reason: 'needs_a_person' });
    await approved.decide(approval, 'approve');
    const { stopReason, answer } = await approved.result();
    expect({ stopReason, answer }).toEqual({
      stopReason: 'success',
      answer: 'Your order was late, so we sent a voucher of 50 USD.',
    });
    const rejected = await project.start('voucher-agent', 'Order 7 was late.');
    await rejected.decide(await rejected.approval(), 'reject');
    expect((await rejected.result()).answer).toMatch(/cannot send a voucher/);
  });

  it('writes a project whose tests can read the target agent of an escalated handoff (PE-3)', async () => {
    const { folder, change, write } = await createProject();
    const clerk = `  - name: clerk
    kind: react
    instructions: Find the order.
    model: { model: main }
`;
    const delegates = '    sub_agents: [{ name: clerk, description: Finds orders. }]\n    tools:';
    change('agents.yaml', '    tools:', delegates);
    change('agents.yaml', 'agents:\n', `agents:\n${clerk}`);
    const ask =
      '  - { id: hand, match: { target: clerk }, decide: escalate, reason: costs_time }\n';
    change('policy.yaml', 'rules:\n', `rules:\n${ask}`);
    write(
      'simulator/default.yaml',
      `name: default
entries:
  - when: { turn: 0 }
    reply: { tool_calls: [{ name: handoff_clerk, arguments: { task: Find order 7. } }] }
  - reply: { text: Not found. }
`,
    );
    const project = await startTestProject(folder);
    onTestFinished(() => project.close());
    const run = await project.start('voucher-agent', 'Order 7 was late.');
    const approval = await run.approval();
    expect(approval).toMatchObject({ target: 'clerk', argumentsJson: '', reason: 'costs_time' });
    await run.decide(approval, 'reject');
    await run.result();
  });

  it('does not overwrite an existing folder, and rejects a name that npm does not accept (PE-3)', async () => {
    const { folder } = await createProject();
    expect(await writ(['init', folder])).toMatchObject({
      exit: 2,
      err: [expect.stringContaining('is not an empty folder')],
    });
    expect(await writ(['init', join(folder, 'My Agents')])).toMatchObject({
      exit: 2,
      err: [expect.stringContaining('is not a name for a package')],
    });
  });
});
