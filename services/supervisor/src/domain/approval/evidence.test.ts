import { loadPolicy } from '@writ/policy';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { MAX_EVIDENCE_STEPS, type StepRecord, selectEvidence } from './evidence.ts';

const policy = loadPolicy(
  'policy: p\nrules: []\nfacts: { note: { kind: gate, initial: "" } }\nhuman: { evidence: { observations: ["*"] } }\n',
  { file: 'p.yaml' },
);

const step = (content: string, observation: string): StepRecord => ({
  agent: { name: 'worker', instance: 'worker-1' },
  callId: 'op-1',
  step: 1,
  action: { kind: 'tool', name: 'look', args: { content } },
  verdict: 'approve',
  reason: 'fine',
  stopReason: '',
  outcome: 'ok',
  observation,
});

describe('selectEvidence', () => {
  it('never exceeds 64 KiB, keeps the latest steps, and marks truncated evidence (SV-5, BD-1)', () => {
    const text = fc
      .tuple(fc.constantFrom('a', 'ä', '€', '"', '\u0001'), fc.integer({ min: 0, max: 9_000 }))
      .map(([character, length]) => character.repeat(length));
    const steps = fc.array(fc.tuple(text, text), { maxLength: MAX_EVIDENCE_STEPS });
    fc.assert(
      fc.property(text, text, steps, (goal, note, contents) => {
        const records = contents.map(([content, observation]) => step(content, observation));
        const facts = { note, other: 'not declared' };
        const evidence = selectEvidence(policy, { goal, facts, steps: records, hasMore: false });
        expect(Buffer.byteLength(JSON.stringify(evidence))).toBeLessThanOrEqual(65_536);
        expect(evidence.factsJson).not.toContain('not declared');
        const shown = records.slice(records.length - evidence.steps.length);
        for (const [index, { observation }] of evidence.steps.entries()) {
          expect(shown[index]?.observation.startsWith(observation)).toBe(true);
        }
        const isWhole =
          evidence.goal === goal &&
          evidence.steps.length === records.length &&
          evidence.steps.every((one, index) => one.observation === shown[index]?.observation) &&
          (note === '' || evidence.factsJson !== '');
        if (!isWhole) expect(evidence.truncated).toBe(true);
      }),
      { numRuns: 100 },
    );
  });

  it('reports earlier steps that are not shown (SV-5)', () => {
    const records = { goal: '', facts: {}, steps: [step('', '')], hasMore: true };
    expect(selectEvidence(policy, records).truncated).toBe(true);
  });
});
