import { loadPolicy, PolicyError } from '../src/index.ts';

/** Input schemas of the tools that the policies of these tests name. */
export const toolSchemas = {
  pay: {
    type: 'object',
    properties: {
      amount: { type: 'number' },
      note: { type: 'string' },
      urgent: { type: 'boolean' },
      tags: { type: 'array', items: { type: 'string' } },
      to: { type: 'object', properties: { iban: { type: 'string' } } },
      any: {},
    },
  },
  label: {
    type: 'object',
    properties: {
      list: { type: 'array' },
      sums: { type: 'array', items: { type: 'number' } },
      parts: { type: 'array', items: { type: 'object' } },
    },
  },
  ping: { type: 'object' },
  pay_later: { type: 'object', properties: { amount: { type: 'string' } } },
};

/** The problems of a policy document, one line each. */
export function problemsOf(text: string): readonly string[] {
  try {
    loadPolicy(text, { file: 'p.yaml', toolSchemas });
    return [];
  } catch (error) {
    if (!(error instanceof PolicyError)) throw error;
    return error.message.split('\n');
  }
}

/** A policy with one rule, whose keys are given as indented lines. */
export const rule = (lines: string) => `policy: p\nrules:\n  - id: a\n${lines}`;

/** A policy with one rule that has this condition. */
export const ruleWhen = (when: string, match = 'tool: pay') =>
  rule(`    match: { ${match} }\n    when: ${when}\n    decide: block\n    reason: no\n`);
