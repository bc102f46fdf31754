import { Priority } from '@writ/kernel';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  applyPending,
  initialFacts,
  loadPolicy,
  type Policy,
  PolicyError,
  type ProposedAction,
  reviewToFixpoint,
} from '../index.ts';

const policyOf = (rules: string, head = ''): Policy =>
  loadPolicy(`policy: p\n${head}rules:\n${rules}`, {
    file: 'p.yaml',
    toolSchemas: { pay: { type: 'object', properties: { amount: { type: 'number' } } } },
  });

const clientTool = (name: string, args: ProposedAction['args'] = {}, digest = '') => ({
  kind: 'client_tool',
  name,
  args,
  definition_digest: digest,
});

function outcome(policy: Policy, action: ProposedAction): string {
  const { verdict, decision } = reviewToFixpoint(policy, {
    action,
    facts: initialFacts(policy),
    agent: { name: 'coder', instance: 'coder-1' },
    tenant: 'acme',
    supervision: {
      runId: 'run-1',
      sessionId: 'run-1',
      depth: 0,
      priority: Priority.NORMAL,
      retention: 'run',
    },
    contractOf: () => undefined,
  });
  return `${verdict} ${decision.reason}`;
}

describe('a tool that the client executes itself', () => {
  const policy = policyOf(`
  - { id: tools, match: { tool: "*" }, decide: approve, reason: gateway }
  - { id: list, match: { kind: client_tool, tool: Bash }, when: args.command == "ls", decide: approve, reason: harmless }
  - { id: other, match: { kind: client_tool, tool: Bash }, decide: escalate, reason: shell, editable: [command] }
`);

  it('is decided by rules that name its kind and that can read its arguments (SV-3, AP-5)', () => {
    expect(outcome(policy, clientTool('Bash', { command: 'ls' }))).toBe('approve harmless');
    expect(outcome(policy, clientTool('Bash', { command: 'ls; rm x' }))).toBe('escalate shell');
    expect(policy.warnings).not.toContainEqual(
      expect.objectContaining({ message: expect.stringContaining('no tool is named') }),
    );
  });

  it('is blocked under any name when no rule names its kind (SV-1, AP-5)', () => {
    fc.assert(
      fc.property(fc.oneof(fc.constantFrom('pay', 'Read'), fc.string()), (name) => {
        fc.pre(name !== 'Bash' && name !== '');
        expect(outcome(policy, clientTool(name))).toBe('block no_rule_matched');
      }),
    );
    expect(outcome(policy, { kind: 'tool', name: 'pay', args: {} })).toBe('approve gateway');
  });

  it('never counts towards a fact, even with the name of a tool of the gateway (SV-3, AP-5)', () => {
    const capped = policyOf(
      '  - { id: all, decide: approve, reason: fine }',
      `facts:
  paid: { kind: cap, initial: 0, updates: [ { tool: pay, count: "1" } ] }
`,
    );
    const before = initialFacts(capped);
    const paid = { kind: 'tool', name: 'pay', args: { amount: 1 } };
    expect(applyPending(capped, before, 'c-1', paid)).not.toBe(before);
    expect(applyPending(capped, before, 'c-1', clientTool('pay', { amount: 1 }))).toBe(before);
  });

  it('can be revised although the gateway has no schema for it (SV-10, AP-5)', () => {
    const revising = policyOf(`
  - { id: dry, match: { kind: client_tool, tool: Bash }, when: '!has(args.dry)', decide: revise, reason: dry, set: { dry: { value: true } } }
  - { id: rest, match: { kind: client_tool, tool: Bash }, decide: approve, reason: fine }
`);
    expect(outcome(revising, clientTool('Bash', { command: 'ls' }))).toBe('approve fine');
  });

  it('can be matched by the digest of the definition that the client sent (AP-5)', () => {
    const pinned = policyOf(`
  - { id: pinned, match: { kind: client_tool, tool: Bash }, when: action.definition_digest == "abc", decide: approve, reason: pinned }
`);
    expect(outcome(pinned, clientTool('Bash', {}, 'abc'))).toBe('approve pinned');
    expect(outcome(pinned, clientTool('Bash', {}, 'abd'))).toBe('block no_rule_matched');
  });

  it('rejects a rule that names a tool for a kind without tools (SV-3)', () => {
    expect(() =>
      policyOf('  - { id: a, match: { kind: final, tool: Bash }, decide: block, reason: no }'),
    ).toThrow(PolicyError);
  });
});
