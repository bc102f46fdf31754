import { describe, expect, it } from 'vitest';
import { covers, type Scope, scopeKey } from './scope.ts';

const SUBJECT = { tenant: 'acme', runId: 'run_1', instance: 'payer-1' };

describe('scopes (SV-9)', () => {
  it.each<[boolean, Scope]>([
    [true, {}],
    [true, { tenant: 'acme' }],
    [false, { tenant: 'other' }],
    [true, { tenant: 'acme', runId: 'run_1' }],
    [false, { tenant: 'other', runId: 'run_1' }],
    [true, { tenant: 'acme', runId: 'run_1', instance: 'payer-1' }],
    [false, { tenant: 'acme', runId: 'run_1', instance: 'payer-2' }],
  ])('reports whether a scope covers an agent: %s for %o', (expected, scope) => {
    expect(covers(scope, SUBJECT)).toBe(expected);
  });

  it('has one key for the whole platform and one for each narrower scope', () => {
    expect([scopeKey({}), scopeKey({ tenant: 'acme' }), scopeKey(SUBJECT)]).toEqual([
      '*',
      'acme',
      'acme/run_1/payer-1',
    ]);
  });
});
