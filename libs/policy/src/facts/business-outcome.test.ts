import { describe, expect, it } from 'vitest';
import { businessOutcome, loadPolicy, resultFieldsFor } from '../index.ts';

const policy = loadPolicy(
  `policy: p
limits: { least: 5 }
outcomes:
  - { tool: pay, ok_when: result.state == "booked" && result.sum.usd >= limits.least }
  - { tool: "log_*", ok_when: "true" }
rules: []
`,
  { file: 'p.yaml' },
);

const of = (tool: string, fields: Record<string, string | number | boolean | null>) =>
  businessOutcome(policy, { tool, status: 'succeeded', fields });

describe('the business outcome of a call', () => {
  it('is computed by the policy rule of the tool from its result (SV-8)', () => {
    expect(of('pay', { state: 'booked', 'sum.usd': 5 })).toBe('ok');
    expect(of('pay', { state: 'declined', 'sum.usd': 5 })).toBe('failed');
    expect(of('pay', { 'sum.usd': 5 })).toBe('failed');
    expect(of('log_read', { error: 'in the log' })).toBe('ok');
    expect(resultFieldsFor(policy, 'pay')).toEqual(['state', 'sum.usd']);
    expect(resultFieldsFor(policy, 'log_read')).toEqual([]);
  });

  it.each([
    [{}, 'ok'],
    [{ status: 'ok' }, 'ok'],
    [{ status: 'sent', error: null }, 'ok'],
    [{ error: '' }, 'ok'],
    [{ error: 'not_found' }, 'failed'],
    [{ error: true }, 'failed'],
    [{ status: 'error' }, 'failed'],
    [{ status: 'failed' }, 'failed'],
  ] as const)('of %j is %s by convention (SV-8)', (fields, expected) => {
    expect(of('mail', fields)).toBe(expected);
    expect(resultFieldsFor(policy, 'mail')).toEqual(['error', 'status']);
  });

  it('is the status of a receipt that reports failed or unknown, and undefined when the call was not executed (SV-8)', () => {
    const by = (status: 'failed' | 'unknown' | 'refused') =>
      businessOutcome(policy, { tool: 'pay', status });
    expect(by('failed')).toBe('failed');
    expect(by('unknown')).toBe('unknown');
    expect(by('refused')).toBeUndefined();
  });

  it.each([
    ['[{ tool: pay }]', 'outcomes[0] must have the key ok_when.'],
    ['[{ tool: pay, ok_when: args.x == 1.0 }]', 'args'],
    ['[{ tool: pay, ok_when: result.status }, 5]', 'outcomes[1] must be a mapping'],
  ])('rejects the rules %s (SV-3)', (rules, problem) => {
    const text = `policy: p\noutcomes: ${rules}\nrules: []\n`;
    expect(() => loadPolicy(text, { file: 'p.yaml' })).toThrow(problem);
  });
});

describe('the variable run', () => {
  it('sets readsEffects only for policies that read run (SV-3, CO-1)', () => {
    const reads = (when: string) =>
      loadPolicy(`policy: p\nrules: [{ id: a, decide: approve, reason: r, when: ${when} }]\n`, {
        file: 'p.yaml',
      }).readsEffects;
    expect(reads('run.effects_done == 0')).toBe(true);
    expect(reads('tenant == "acme"')).toBe(false);
    expect(() => reads('run.effects == 0')).toThrow(
      'run.effects does not exist; available: effects_done, effects_failed, effects_refused or effects_pending.',
    );
  });
});
