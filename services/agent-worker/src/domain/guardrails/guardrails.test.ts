import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  DEFAULT_GUARDRAILS,
  FRESH_COUNTERS,
  type GuardrailCounters,
  type GuardrailObservation,
  type ObservedCall,
  observe,
} from './guardrails.ts';

const read = (path: string): ObservedCall => ({ tool: 'read', args: { path } });
const step = (...calls: ObservedCall[]): GuardrailObservation => ({ kind: 'tool_step', calls });

function trips(observations: readonly GuardrailObservation[], limits = DEFAULT_GUARDRAILS) {
  let counters: GuardrailCounters = FRESH_COUNTERS;
  return observations.map((observation) => {
    const outcome = observe(limits, counters, observation);
    counters = outcome.counters;
    return outcome.tripped;
  });
}

describe('observe', () => {
  it('stops a loop at the third repeat of the same tool calls (AG-6)', () => {
    expect(trips(Array.from({ length: 4 }, () => step(read('a'))))).toEqual([
      undefined,
      undefined,
      undefined,
      'stuck',
    ]);
  });

  it('resets the count when the set of calls differs (AG-6)', () => {
    const calls = ['a', 'a', 'a', 'b', 'a', 'a', 'a'].map((path) => step(read(path)));
    expect(trips(calls)).not.toContain('stuck');
  });

  it('ignores the order of calls and arguments (AG-6)', () => {
    const one = { tool: 'copy', args: { from: 'a', to: 'b' } };
    const same = { tool: 'copy', args: { to: 'b', from: 'a' } };
    const limits = { ...DEFAULT_GUARDRAILS, maxRepeatedToolSteps: 1 };
    expect(trips([step(one, read('x')), step(read('x'), same)], limits)).toEqual([
      undefined,
      'stuck',
    ]);
  });

  it('compares only the first 200 characters of values (AG-6)', () => {
    const long = 'x'.repeat(200);
    const limits = { ...DEFAULT_GUARDRAILS, maxRepeatedToolSteps: 1 };
    expect(trips([step(read(`${long}1`)), step(read(`${long}2`))], limits)[1]).toBe('stuck');
    expect(trips([step(read('1')), step(read('2'))], limits)[1]).toBeUndefined();
  });

  it('continues a truncated answer twice, and never when disabled (AG-6)', () => {
    const truncated: GuardrailObservation[] = [0, 1, 2].map(() => ({ kind: 'truncated' }));
    expect(trips(truncated)).toEqual(['max_tokens', 'max_tokens', undefined]);
    const off = { ...DEFAULT_GUARDRAILS, maxTokensRecoveries: 0 };
    expect(trips(truncated, off)).toEqual([undefined, undefined, undefined]);
  });

  it('trips once when the budget is nearly used up (AG-6, EM-5)', () => {
    const budgets = [false, true, true, false, true].map(
      (near): GuardrailObservation => ({ kind: 'budget', near }),
    );
    expect(trips(budgets)).toEqual([undefined, 'near_budget', undefined, undefined, undefined]);
  });

  it('resumes from stored counters (AG-6)', () => {
    const observation = fc.oneof(
      fc.constant<GuardrailObservation>({ kind: 'truncated' }),
      fc.boolean().map((near): GuardrailObservation => ({ kind: 'budget', near })),
      fc
        .array(fc.constantFrom('a', 'b'), { maxLength: 2 })
        .map((paths) => step(...paths.map(read))),
    );
    fc.assert(
      fc.property(fc.array(observation, { maxLength: 30 }), (observations) => {
        let counters: GuardrailCounters = FRESH_COUNTERS;
        const stored = observations.map((each) => {
          const outcome = observe(DEFAULT_GUARDRAILS, counters, each);
          counters = JSON.parse(JSON.stringify(outcome.counters));
          return outcome.tripped;
        });
        expect(stored).toEqual(trips(observations));
      }),
    );
  });
});
