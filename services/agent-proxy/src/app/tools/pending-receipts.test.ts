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

  it('are sent without a result that is larger than the supervisor accepts (SV-7)', () => {
    const receipts = new PendingReceipts();
    receipts.add(AGENT, { callId: 'a', receipt: 'receipt-a', content: LARGE + LARGE });
    const sent = receipts.peek(AGENT);
    expect(sent).toEqual({ receipts: ['receipt-a'], observations: [] });
    receipts.delivered(AGENT, sent);
    expect(receipts.peek(AGENT).receipts).toEqual([]);
  });

  it('are dropped after 100 rejections because of an unknown key, and at once after any other rejection (SV-6, TG-8)', () => {
    const receipts = new PendingReceipts();
    receipts.add(AGENT, { callId: 'a', receipt: 'receipt-a', content: '' });
    const sent = receipts.peek(AGENT);
    receipts.add(AGENT, { callId: 'b', receipt: 'receipt-b', content: '' });
    for (let n = 1; n < 100; n += 1) receipts.rejected(AGENT, sent, true);
    expect(receipts.peek(AGENT).receipts).toEqual(['receipt-a', 'receipt-b']);
    receipts.rejected(AGENT, sent, true);
    expect(receipts.peek(AGENT).receipts).toEqual(['receipt-b']);
    receipts.rejected(AGENT, receipts.peek(AGENT), false);
    expect(receipts.peek(AGENT).receipts).toEqual([]);
  });
});
