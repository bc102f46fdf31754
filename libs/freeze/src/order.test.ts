import { HistoryRetention } from '@writ/kernel';
import { describe, expect, it } from 'vitest';
import { covers, type FreezeScope, frozenError, purges, scopeKey } from './order.ts';

const SUBJECT = { tenant: 'acme', runId: 'run_1', agentInstance: 'payer-1' };

describe('freeze scopes (SV-9)', () => {
  it.each<[boolean, FreezeScope]>([
    [true, {}],
    [true, { tenant: 'acme' }],
    [false, { tenant: 'other' }],
    [true, { tenant: 'acme', runId: 'run_1' }],
    [false, { tenant: 'other', runId: 'run_1' }],
    [true, { tenant: 'acme', runId: 'run_1', agentInstance: 'payer-1' }],
    [false, { tenant: 'acme', runId: 'run_1', agentInstance: 'payer-2' }],
  ])('reports whether a scope covers an agent: %s for %o', (expected, scope) => {
    expect(covers(scope, SUBJECT)).toBe(expected);
  });

  it('uses one key for everything and one for each narrower scope', () => {
    expect([scopeKey({}), scopeKey({ tenant: 'acme' }), scopeKey(SUBJECT)]).toEqual([
      '*',
      'acme',
      'acme/run_1/payer-1',
    ]);
  });

  it('names the operator and the reason of a halt, and returns FROZEN for any other cause', () => {
    const order = { orderId: 'halt_1', reason: 'It pays too much.', orderedBy: 'ops' };
    expect(frozenError({ ...order, cause: 'halt' })).toMatchObject({
      reason: 'HALTED',
      message: 'Halted by ops: It pays too much.',
      metadata: { order_id: 'halt_1' },
    });
    expect(frozenError({ ...order, cause: 'cancel' }).reason).toBe('FROZEN');
  });

  it('deletes recorded results only at an end whose retention keeps nothing (SUP-4)', () => {
    expect(purges({ cause: 'end', retention: HistoryRetention.NONE })).toBe(true);
    expect(purges({ cause: 'end', retention: HistoryRetention.RUN })).toBe(true);
    expect(purges({ cause: 'end', retention: HistoryRetention.PERMANENT })).toBe(false);
    expect(purges({ cause: 'end', retention: null })).toBe(false);
    expect(purges({ cause: 'halt', retention: HistoryRetention.NONE })).toBe(false);
  });
});
