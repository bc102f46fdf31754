import { describe, expect, it } from 'vitest';
import { loadPolicy } from '../src/index.ts';
import { problemsOf, toolSchemas } from './policy-document.ts';

describe('a policy with a likely mistake', () => {
  const warningsOf = (text: string) =>
    loadPolicy(text, { file: 'p.yaml', toolSchemas }).warnings.map(
      ({ line, column, message }) => `${line}:${column} ${message}`,
    );
  const rules = (match: string) =>
    `policy: p\nrules:\n  - { id: a, match: ${match}, decide: approve, reason: yes }\n`;

  it.each(['{ tool: pay }', '{ kind: [tool, delegation] }', '{ target: "*" }'])(
    'causes a warning when no rule matches a final answer: %s (SV-3)',
    (match) => {
      expect(warningsOf(rules(match))).toEqual([
        '3:3 no rule matches a final answer, so every answer is blocked; add a rule with match: { kind: final }.',
      ]);
    },
  );

  it.each(['{ kind: final }', '{ kind: [tool, final] }', '{ agent: support }'])(
    'causes no warning when a rule may match a final answer: %s (SV-3)',
    (match) => {
      expect(warningsOf(rules(match))).toEqual([]);
    },
  );

  it('causes a warning when a cap names an unknown tool or argument (SV-3, SV-5)', () => {
    const caps = (cap: string) =>
      warningsOf(`${rules('{ kind: final }')}human: { caps: [{ ${cap}, max: 5 }] }\n`);
    expect(caps('tool: pay, argument: amount')).toEqual([]);
    expect(caps('tool: pya, argument: amount')).toEqual([
      '4:25 human.caps[0].tool: no tool is named pya.',
    ]);
    expect(caps('tool: pay, argument: amuont')).toEqual([
      expect.stringMatching(
        /^4:40 human\.caps\[0\]\.argument: argument amuont does not exist; available: amount, /,
      ),
    ]);
  });

  it('is rejected with only one problem for several tabs (SYS-3)', () => {
    const text = 'policy: p\nrules:\n\t- id: a\n\t  decide: block\n\t- id: b\n';
    expect(problemsOf(text)).toEqual(['p.yaml:3:1: tabs are not allowed; indent with spaces.']);
  });

  it('causes a warning when a tool is unknown or a rule is unreachable (SV-3)', () => {
    const text = `policy: p
rules:
  - { id: a, match: { tool: pya }, decide: block, reason: no }
  - { id: b, decide: block, reason: no }
  - { id: c, match: { tool: pay }, decide: approve, reason: yes }
`;
    const { warnings } = loadPolicy(text, { file: 'p.yaml', toolSchemas });
    expect(warnings).toEqual([
      {
        file: 'p.yaml',
        line: 3,
        column: 29,
        message: 'rules[0].match.tool: no tool is named pya.',
      },
      {
        file: 'p.yaml',
        line: 5,
        column: 5,
        message: 'rules[2] is never reached: rule b matches every action.',
      },
    ]);
  });
});
