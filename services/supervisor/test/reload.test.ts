import { readFileSync } from 'node:fs';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { ApprovalState } from '@writ/contracts/writ/approval/v1/approval_pb';
import { sha256Hex } from '@writ/kernel';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { AGENTS_YAML, Family } from './family.ts';
import { LOOK_UP, RefundHarness, refund } from './refund-harness.ts';
import { exampleFile } from './refund-tools.ts';

const POLICY = readFileSync(exampleFile('policy.yaml'), 'utf8');
const STRICT = POLICY.replace('refunds_per_run: { usd: 2000 }', 'refunds_per_run: { usd: 300 }');
const BROKEN = POLICY.replace('facts.has_context', 'facts.has_contxt');

describe('policy changes during runs', () => {
  let folder: string;
  let policy: string;
  let harness: RefundHarness;
  beforeEach(async () => {
    folder = await mkdtemp(join(tmpdir(), 'writ-reload-'));
    policy = join(folder, 'policy.yaml');
    await writeFile(policy, POLICY);
    harness = await RefundHarness.start({ config: { policy } });
  });
  afterEach(async () => {
    await harness.close();
    await rm(folder, { recursive: true });
  });

  /** Proposes actions of another run until one is decided with `version`. */
  const untilVersion = async (version: string) => {
    const agent = await harness.agent();
    let step = 0;
    await expect
      .poll(
        async () => {
          step += 1;
          return (await agent.propose(`look-${step}`, LOOK_UP)).policyVersion;
        },
        { interval: 15 },
      )
      .toBe(version);
  };

  it('apply to the next review of every run, and each decision names its version (SV-3, SV-5)', async () => {
    const agent = await harness.agent();
    const before = await agent.propose('op-1', refund(200));
    expect(before).toMatchObject({
      reason: 'refund_within_auto_limit',
      policyVersion: sha256Hex(POLICY),
    });
    const escalated = await agent.propose('op-2', refund(1200));
    await writeFile(policy, STRICT);
    await untilVersion(sha256Hex(STRICT));
    const after = await agent.propose('op-3', refund(200));
    expect(after).toMatchObject({
      reason: 'cap_to_remaining_run_budget',
      policyVersion: sha256Hex(STRICT),
    });
    // Earlier decisions keep their version.
    expect((await agent.getDecision('op-1'))?.policyVersion).toBe(sha256Hex(POLICY));
    const answer = { case: 'approve', value: {} } as const;
    const { approvalId } = escalated;
    await expect(
      harness.approvals('dora').decideApproval({ approvalId, requestId: 'd-1', answer }),
    ).rejects.toMatchObject({ metadata: { policy_reason: 'refund_budget_exhausted' } });
  });

  it('are ignored when the new document is invalid (SV-3, SYS-4)', async () => {
    const agent = await harness.agent();
    await writeFile(policy, BROKEN);
    for (let step = 1; step <= 4; step += 1) {
      const { policyVersion } = await agent.propose(`op-${step}`, LOOK_UP);
      expect(policyVersion).toBe(sha256Hex(POLICY));
    }
    await writeFile(policy, STRICT);
    await untilVersion(sha256Hex(STRICT));
  });
});

describe('four-eyes rules', () => {
  const APPROVE = { case: 'approve', value: {} } as const;
  const EDIT = {
    case: 'approveWithEdits',
    value: { argumentsJson: '{"amount_usd":500,"reason":"Paid twice.","user_id":42}' },
  } as const;
  const REJECT = { case: 'reject', value: {} } as const;
  let harness: RefundHarness;
  afterEach(() => harness.close());

  const ofPolicy = (rule: string) => ({
    policy: { file: 'policy.yaml', text: POLICY.replace('  four_eyes: false\n', `  ${rule}\n`) },
  });

  it.each([
    ['the policy', ofPolicy('four_eyes: true')],
    ['the policy for this tool', ofPolicy('four_eyes: [issue_*]')],
    ['a setting', { fourEyes: true }],
  ])(
    'prevent the creator of a run from approving its actions when %s requires it (SV-5)',
    async (_, config) => {
      harness = await RefundHarness.start({ config });
      const agent = await harness.agent('refund-worker', 'anna');
      const { approvalId } = await agent.propose('op-1', refund(1200));
      for (const [index, answer] of [APPROVE, EDIT].entries()) {
        await expect(
          harness.approvals('anna').decideApproval({ approvalId, requestId: `a-${index}`, answer }),
        ).rejects.toMatchObject({
          kind: 'permission_denied',
          reason: 'FOUR_EYES_REQUIRED',
          message: expect.stringContaining('anna started this run'),
          metadata: { run_created_by: 'anna' },
        });
      }
      const { approval } = await harness
        .approvals('dora')
        .decideApproval({ approvalId, requestId: 'd-1', answer: EDIT });
      expect(approval).toMatchObject({
        state: ApprovalState.APPROVED,
        humanApproval: { decidedBy: 'dora' },
      });
      const other = await agent.propose('op-2', refund(1200));
      const no = { approvalId: other.approvalId, requestId: 'a-9', answer: REJECT };
      expect((await harness.approvals('anna').decideApproval(no)).approval?.state).toBe(
        ApprovalState.REJECTED,
      );
    },
  );

  it('require another person to approve when the policy does not set human.four_eyes (SV-5)', async () => {
    const text = POLICY.replace('  four_eyes: false\n', '');
    expect(text).not.toContain('four_eyes');
    const policy = { file: 'policy.yaml', text };
    harness = await RefundHarness.start({ config: { policy } });
    const agent = await harness.agent('refund-worker', 'anna');
    const { approvalId } = await agent.propose('op-1', refund(1200));
    const approve = (person: 'anna' | 'dora') =>
      harness
        .approvals(person)
        .decideApproval({ approvalId, requestId: `${person}-1`, answer: EDIT });
    const message =
      'anna started this run; the four-eyes rule requires another person to approve its calls of issue_refund, unless the policy sets human.four_eyes to false.';
    const read = await harness.approvals('anna').getApproval({ approvalId });
    expect(read.approval?.readerRights).toMatchObject({
      mayApprove: false,
      mayEdit: false,
      refusal: message,
    });
    await expect(approve('anna')).rejects.toMatchObject({ reason: 'FOUR_EYES_REQUIRED', message });
    expect((await approve('dora')).approval?.state).toBe(ApprovalState.APPROVED);
  });

  it.each([
    ['does not set it', '', true],
    ['requires it', '  four_eyes: true\n', false],
  ])(
    'apply to the person of the development key only when the policy requires it; the policy %s (SV-5)',
    async (_, line, isAllowed) => {
      const text = POLICY.replace('  four_eyes: false\n', line);
      const policy = { file: 'policy.yaml', text };
      harness = await RefundHarness.start({ config: { policy, developer: 'anna' } });
      const agent = await harness.agent('refund-worker', 'anna');
      const { approvalId } = await agent.propose('op-1', refund(1200));
      const read = await harness.approvals('anna').getApproval({ approvalId });
      expect(read.approval?.readerRights?.mayEdit).toBe(isAllowed);
    },
  );

  it('let every approver approve actions of other tools (SV-5)', async () => {
    harness = await RefundHarness.start({ config: ofPolicy('four_eyes: [send_*]') });
    const agent = await harness.agent('refund-worker', 'anna');
    const { approvalId } = await agent.propose('op-1', refund(1200));
    const { approval } = await harness
      .approvals('anna')
      .decideApproval({ approvalId, requestId: 'a-1', answer: EDIT });
    expect(approval?.state).toBe(ApprovalState.APPROVED);
  });
});

describe('agent definitions that change', () => {
  it('are listed with their current names and descriptions (AG-1)', async () => {
    const folder = await mkdtemp(join(tmpdir(), 'writ-reload-'));
    const agents = join(folder, 'agents.yaml');
    await writeFile(agents, AGENTS_YAML);
    const family = await Family.start({ config: { agents } });
    try {
      const runs = family.supervisor.runs();
      const listed = async () =>
        (await runs.listAgents({})).agents.map(({ name, description }) => [name, description]);
      const others = [
        ['digger', ''],
        ['lead', ''],
      ];
      expect(await listed()).toEqual([...others, ['outsider', ''], ['scout', '']]);
      const changed = AGENTS_YAML.replace(
        '- name: outsider\n',
        '- name: partner\n    description: Helps.\n',
      ).replace('- name: scout\n', '- name: scout\n    delegate_only: true\n');
      await writeFile(agents, changed);
      await expect.poll(listed, { interval: 15 }).toEqual([...others, ['partner', 'Helps.']]);
    } finally {
      await family.close();
      await rm(folder, { recursive: true });
    }
  });

  it('apply to new runs, while a run keeps the definitions that it started with (AG-1, SUP-9)', async () => {
    const folder = await mkdtemp(join(tmpdir(), 'writ-reload-'));
    const agents = join(folder, 'agents.yaml');
    const text = AGENTS_YAML;
    await writeFile(agents, text);
    const family = await Family.start({ config: { agents } });
    try {
      const old = await family.lead();
      const changed = text
        .replace('max_steps: 12', 'max_steps: 3')
        .replace('tools: [look, act]', 'tools: [look]');
      await writeFile(agents, changed);
      const stepsOf = async () => (await family.lead()).delivery.manifest?.limits?.maxSteps;
      await expect.poll(stepsOf, { interval: 15 }).toBe(3);
      const toolsOf = async (lead: typeof old) => {
        const { child } = await lead.spawn('op-1', 'scout', 'Look it up.');
        return family.member(child?.instance ?? '').delivery.manifest?.tools;
      };
      expect(await toolsOf(old)).toEqual(['look', 'act']);
      expect(await toolsOf(await family.lead())).toEqual(['look']);
      await writeFile(agents, text.replace('kind: orchestrator', 'kind: conductor'));
      for (let runs = 0; runs < 4; runs += 1) expect(await stepsOf()).toBe(3);
    } finally {
      await family.close();
      await rm(folder, { recursive: true });
    }
  });
});
