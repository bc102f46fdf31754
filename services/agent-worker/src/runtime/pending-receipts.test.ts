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
    pending.acknowledge(first);
    expect(callsOf(pending)).toEqual(Array.from({ length: 44 }, (_, n) => `op-${256 + n}`));
  });

  it('contains at most 1.5 MiB of results, and all receipts (BD-1, SV-3, SV-7)', () => {
    const pending = waiting(5, 'x'.repeat(700_000));
    const first = pending.peek();
    expect(first.receipts).toHaveLength(5);
    expect(callsOf(pending)).toEqual(['op-0', 'op-1']);
    expect(pending.acknowledge(first)).toHaveLength(2);
    expect(pending.peek().receipts).toEqual(['receipt-2', 'receipt-3', 'receipt-4']);
    expect(callsOf(pending)).toEqual(['op-2', 'op-3']);
  });

  it('contains at most 512 KiB of receipts (BD-1)', () => {
    const pending = new PendingReceipts();
    for (let n = 0; n < 100; n += 1) {
      pending.add(`op-${n}`, outcomeOf(`${n}`.padEnd(16_000, 'x'), 'x'));
    }
    expect(pending.peek().receipts).toHaveLength(32);
  });

  it('contains the receipt of a result over 1 MiB without the result (SV-7)', () => {
    const pending = waiting(1, 'x'.repeat(1_048_577));
    expect(pending.peek()).toMatchObject({ receipts: ['receipt-0'], observations: [] });
    const restored = new PendingReceipts();
    const content = 'x'.repeat(1_048_577);
    restored.restore([{ callId: 'op-0', receipt: 'receipt-0', content }]);
    expect(restored.peek()).toMatchObject({ receipts: ['receipt-0'], observations: [] });
  });

  it('does not depend on the order in which concurrent calls ended (RT-1)', () => {
    const pending = new PendingReceipts();
    for (const branch of [10, 2, 1]) pending.add(`op-0-${branch}-0`, outcomeOf(`${branch}`, 'x'));
    expect(pending.peek().receipts).toEqual(['1', '2', '10']);
  });

  it('contains exactly the receipts that a replayed request removes, even those that the replay adds later (RT-1, SV-7)', () => {
    const live = waiting(3);
    const batch = live.peek();
    live.add('op-3', outcomeOf('receipt-3', 'x'));
    const delivered = live.acknowledge(batch);
    const replay = waiting(1);
    replay.replayed(delivered, '');
    for (const n of [3, 2, 1]) replay.add(`op-${n}`, outcomeOf(`receipt-${n}`, 'x'));
    expect(replay.waiting).toEqual(live.waiting);
  });

  it('does not remove the receipt of the resolved outcome of the same call (RT-1, SV-7)', () => {
    const live = waiting(1);
    const delivered = live.acknowledge(live.peek());
    const replay = waiting(1);
    replay.replayed(delivered, '0-1');
    replay.add('op-0', outcomeOf('receipt-of-resolution', 'done'));
    expect(replay.peek().receipts).toEqual(['receipt-of-resolution']);
  });

  it('contains everything pending when a journal entry of an earlier version is replayed outside of branches (RT-1)', () => {
    const pending = waiting(300);
    pending.replayed(undefined, '0-1');
    expect(pending.waiting).toHaveLength(300);
    pending.replayed(undefined, '');
    expect(pending.waiting).toEqual([]);
  });
});
