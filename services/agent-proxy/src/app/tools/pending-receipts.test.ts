import { describe, expect, it } from 'vitest';
import { PendingReceipts } from './pending-receipts.ts';

const AGENT = { tenant: 'acme', runId: 'run-1', instance: 'root' };
const LARGE = 'x'.repeat(700_000);

describe('receipts that are sent with the next review', () => {
  it('are sent again with the following review if their results did not fit into the first review (SV-7)', () => {
    const receipts = new PendingReceipts();
    receipts.add(AGENT, { callId: 'a', receipt: 'receipt-a', content: LARGE });
    receipts.add(AGENT, { callId: 'b', receipt: 'receipt-b', content: LARGE });
    receipts.add(AGENT, { callId: 'c', receipt: 'receipt-c', content: '' });
    const first = receipts.peek(AGENT);
    // The facts of the run require all receipts in the first review.
    expect(first.receipts).toEqual(['receipt-a', 'receipt-b', 'receipt-c']);
    expect(first.observations.map(({ callId }) => callId)).toEqual(['a']);
    receipts.delivered(AGENT, first);
    const second = receipts.peek(AGENT);
    expect(second.receipts).toEqual(['receipt-b']);
    expect(second.observations.map(({ callId }) => callId)).toEqual(['b']);
    receipts.delivered(AGENT, second);
    expect(receipts.peek(AGENT)).toEqual({ receipts: [], observations: [] });
  });

  it('are sent with at least one result, even if that result is larger than the limit', () => {
    const receipts = new PendingReceipts();
    receipts.add(AGENT, { callId: 'a', receipt: 'receipt-a', content: LARGE + LARGE });
    expect(receipts.peek(AGENT).observations.map(({ callId }) => callId)).toEqual(['a']);
  });
});
