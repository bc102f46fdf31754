import { AuditService } from '@writ/contracts/writ/audit/v1/audit_service_pb';
import { ExecutedFrom } from '@writ/contracts/writ/review/v1/action_pb';
import { type Decision, Verdict } from '@writ/contracts/writ/review/v1/decision_pb';
import { sha256Hex } from '@writ/kernel';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type Proposal, RefundHarness } from './refund-harness.ts';

const AGENTS = `
agents:
  - name: coder
    kind: external
    model: { model: refund-desk }
  - name: refund-worker
    kind: react
    model: { model: refund-desk }
    tools: [issue_refund]
`;
const POLICY = `
policy: coder
rules:
  - { id: gateway, match: { tool: "*" }, decide: approve, reason: gateway }
  - { id: list, match: { kind: client_tool, tool: Bash }, when: args.command == "ls", decide: approve, reason: harmless }
  - { id: shell, match: { kind: client_tool, tool: Bash }, decide: escalate, reason: shell, editable: [command] }
  - { id: shown, match: { kind: client_tool, tool: Bash }, decide: approve, reason: seen_by_a_person }
`;
const DIGEST = sha256Hex('the definition');

function clientTool(tool: string, args: unknown): Proposal {
  const argumentsJson = typeof args === 'string' ? args : JSON.stringify(args);
  const value = { tool, argumentsJson, definitionDigest: DIGEST };
  return { proposal: { case: 'action', value: { kind: { case: 'clientTool', value } } } };
}

describe('a tool that the program of an external agent executes itself', () => {
  let harness: RefundHarness;
  beforeAll(async () => {
    const config = {
      agents: { text: AGENTS, file: 'agents.yaml' },
      policy: { text: POLICY, file: 'policy.yaml' },
    };
    harness = await RefundHarness.start({ config });
  });
  afterAll(() => harness.close());

  const audited = async (runId: string, { callId }: Decision) => {
    const { records } = await harness.supervisor
      .as('anna', AuditService)
      .listAuditRecords({ kind: 'decision' });
    const facts = records.map(({ canonicalJson }) => JSON.parse(canonicalJson));
    return facts.find((record) => record.run_id === runId && record.call_id === callId);
  };

  it('is approved by rule without a writ, and audited with its kind and definition (SV-1, SV-6, SV-8, AP-5)', async () => {
    const agent = await harness.agent('coder');
    const decision = await agent.propose('x-1', clientTool('Bash', { command: 'ls' }));
    const value = { tool: 'Bash', argumentsJson: '{"command":"ls"}', definitionDigest: DIGEST };
    expect(decision).toMatchObject({
      verdict: Verdict.APPROVE,
      reason: 'harmless',
      settled: true,
      writ: '',
      stopReason: '',
      executedAction: { kind: { case: 'clientTool', value } },
    });
    expect(await agent.getDecision('x-1')).toMatchObject({ settled: true, writ: '' });
    await expect
      .poll(() => audited(agent.scope.runId, decision))
      .toMatchObject({
        action_name: 'Bash',
        action_kind: 'client_tool',
        executed_kind: 'client_tool',
        definition_digest: DIGEST,
        executed_from: 'original',
      });
    expect(await audited(agent.scope.runId, decision)).not.toHaveProperty('writ_id');
  });

  it('is edited by a person within the editable arguments, without a writ (SV-5, AP-5)', async () => {
    const agent = await harness.agent('coder');
    const asked = await agent.propose('x-1', clientTool('Bash', { command: 'rm -rf build', n: 1 }));
    expect(asked).toMatchObject({ verdict: Verdict.ESCALATE, settled: false, writ: '' });
    const { approvalId } = asked;
    const decide = (edit: object) =>
      harness.approvals('dora').decideApproval({
        approvalId,
        requestId: JSON.stringify(edit).replaceAll(/\W/g, '-'),
        answer: {
          case: 'approveWithEdits',
          value: { argumentsJson: JSON.stringify(edit) },
        },
      });
    await expect(decide({ command: 'ls', n: 2 })).rejects.toMatchObject({
      reason: 'APPROVAL_ARGUMENT_LOCKED',
    });
    const { approval } = await decide({ command: 'rm -rf build/tmp', n: 1 });
    const edited = {
      kind: {
        case: 'clientTool',
        value: { tool: 'Bash', argumentsJson: '{"command":"rm -rf build/tmp","n":1}' },
      },
    };
    expect(approval?.executedAction).toMatchObject(edited);
    // The repeated proposal returns the decision of the same approval.
    const proposal = clientTool('Bash', { command: 'rm -rf build', n: 1 });
    expect(await agent.propose('x-1', proposal)).toMatchObject({
      settled: true,
      writ: '',
      executedFrom: ExecutedFrom.HUMAN_REVISED,
      executedAction: edited,
      humanApproval: { decidedBy: 'dora' },
    });
  });

  it('is blocked when no rule names its kind, even with the name of a tool of the gateway (SV-1, AP-5)', async () => {
    const agent = await harness.agent('coder');
    const decision = await agent.propose('x-1', clientTool('issue_refund', { amount_usd: 5 }));
    expect(decision).toMatchObject({
      verdict: Verdict.BLOCK,
      stopReason: 'supervisor_block:no_rule_matched',
      writ: '',
    });
    expect(decision.executedAction).toBeUndefined();
  });

  it.each([
    ['final', { case: 'action', value: { kind: { case: 'final', value: { answer: 'Done.' } } } }],
    ['raw_text', { case: 'rawText', value: '{"kind":"final","answer":"Done."}' }],
  ] as const)(
    'its agent cannot end the run with an answer in %s (SV-2, AP-1)',
    async (kind, proposal) => {
      const agent = await harness.agent('coder');
      const decision = await agent.propose('x-1', { proposal });
      expect(decision).toMatchObject({
        verdict: Verdict.INVALID,
        stopReason: `invalid_action:${kind}_not_allowed:external`,
      });
      expect(decision.executedAction).toBeUndefined();
    },
  );

  it('is invalid for an agent of another kind, and never executed (SV-2, AP-5)', async () => {
    const agent = await harness.agent('refund-worker');
    const decision = await agent.propose('x-1', clientTool('Bash', { command: 'ls' }));
    expect(decision).toMatchObject({
      verdict: Verdict.INVALID,
      stopReason: 'invalid_action:client_tool_not_allowed:react',
      writ: '',
    });
    expect(decision.executedAction).toBeUndefined();
  });

  it.each([
    ['non_json', '{"command":'],
    ['bad_tool_args', '["ls"]'],
  ])('is invalid when its arguments are not a JSON object: %s (SV-2, AP-5)', async (why, args) => {
    const agent = await harness.agent('coder');
    expect(await agent.propose('x-1', clientTool('Bash', args))).toMatchObject({
      verdict: Verdict.INVALID,
      stopReason: `invalid_action:${why}`,
    });
  });

  it('is in the history of the run as unverified (SV-7, AP-5)', async () => {
    const agent = await harness.agent('coder');
    await agent.propose('x-1', clientTool('Bash', { command: 'ls' }));
    const { runId } = agent.scope;
    await harness.supervisor.runs().closeRun({ requestId: 'close-1', runId });
    const { result } = await harness.ended(agent);
    expect(result?.history).toMatchObject([
      { callId: 'x-1', unverified: true, observationJson: '' },
    ]);
    expect(result?.trace).toMatchObject([{ tool: 'Bash', ok: true }]);
  });
});
