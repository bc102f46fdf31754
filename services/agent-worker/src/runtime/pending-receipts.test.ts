import { describe, expect, it } from 'vitest';
import { PendingReceipts } from './pending-receipts.ts';

function outcomeOf(receipt: string, content: string) {
  return {
    status: 'ok',
    stopReason: '',
    message: '',
    contentKind: 'text',
    receipt,
    content,
  } as const;
}

/** Receipts of the calls `op-0` to `op-<count - 1>`, each with a result. */
function waiting(count: number, content = 'x'): PendingReceipts {
  const pending = new PendingReceipts();
  for (let n = 0; n < count; n += 1) pending.add(`op-${n}`, outcomeOf(`receipt-${n}`, content));
  return pending;
}

function callsOf(pending: PendingReceipts): string[] {
  return pending.peek().observations.map(({ callId }) => callId);
}

describe('a batch of pending receipts', () => {
  it('contains at most 256 receipts, and the next batch contains the others (BD-1, SV-7)', () => {
    const pending = waiting(300);
    const first = pending.peek();
    expect(first.receipts).toHaveLength(256);
    pending.delivered(first);
    expect(callsOf(pending)).toEqual(Array.from({ length: 44 }, (_, n) => `op-${256 + n}`));
  });

  it('contains at most 2 MiB of receipts and results (BD-1, SV-7)', () => {
    const pending = waiting(5, 'x'.repeat(1_000_000));
    const first = pending.peek();
    expect(first.observations.map(({ callId }) => callId)).toEqual(['op-0', 'op-1']);
    pending.delivered(first);
    expect(callsOf(pending)).toEqual(['op-2', 'op-3']);
  });

  it('contains the receipt of a result over 1 MiB without the result (SV-7)', () => {
    const pending = waiting(1, 'x'.repeat(1_048_577));
    expect(pending.peek()).toMatchObject({ receipts: ['receipt-0'], observations: [] });
  });

  it('does not depend on the order in which concurrent calls ended (RT-1)', () => {
    const pending = new PendingReceipts();
    for (const branch of [10, 2, 1]) pending.add(`op-0-${branch}-0`, outcomeOf(`${branch}`, 'x'));
    expect(pending.peek().receipts).toEqual(['1', '2', '10']);
  });

  it('is all that a replayed request acknowledges (RT-1, SV-7)', () => {
    const pending = waiting(300);
    pending.acknowledgeReplayed();
    expect(pending.waiting).toHaveLength(44);
  });
});
