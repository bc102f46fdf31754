import { HistoryRetention } from '@writ/kernel';
import { describe, expect, it } from 'vitest';
import { frozenError, purges } from './order.ts';

describe('freeze orders (SV-9)', () => {
  it('names the operator and the reason of a halt, and returns FROZEN for any other cause', () => {
    const order = { orderId: 'halt_1', reason: 'It pays too much.', orderedBy: 'ops' };
    expect(frozenError({ ...order, cause: 'halt' })).toMatchObject({
      reason: 'HALTED',
      message: 'Halted by ops: It pays too much.',
      metadata: { order_id: 'halt_1' },
    });
    expect(frozenError({ ...order, cause: 'cancel' }).reason).toBe('FROZEN');
  });

  it('deletes recorded results only when a run ends without permanent retention (SUP-4)', () => {
    expect(purges({ cause: 'end', retention: HistoryRetention.NONE })).toBe(true);
    expect(purges({ cause: 'end', retention: HistoryRetention.RUN })).toBe(true);
    expect(purges({ cause: 'end', retention: HistoryRetention.PERMANENT })).toBe(false);
    expect(purges({ cause: 'end', retention: null })).toBe(false);
    expect(purges({ cause: 'halt', retention: HistoryRetention.NONE })).toBe(false);
  });
});
