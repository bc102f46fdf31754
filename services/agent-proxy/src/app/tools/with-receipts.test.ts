import { InvalidRequestError, PermissionDeniedError, PreconditionError } from '@writ/kernel';
import { describe, expect, it } from 'vitest';
import { type CarriedReceipts, PendingReceipts } from './pending-receipts.ts';
import { withReceipts } from './with-receipts.ts';

const AGENT = { tenant: 'acme', runId: 'run-1', instance: 'a-1' };

/** Requests a review with one pending receipt. If `error` is given, the supervisor rejects requests with receipts. */
async function reviewed(error?: Error) {
  const receipts = new PendingReceipts();
  receipts.add(AGENT, { callId: 'op-1', receipt: 'receipt-1', content: 'done' });
  const requests: CarriedReceipts[] = [];
  const review = async (carried: CarriedReceipts): Promise<string> => {
    requests.push(carried);
    if (error !== undefined && carried.receipts.length > 0) throw error;
    return 'approved';
  };
  const decision = await withReceipts(receipts, AGENT, review);
  const sent = requests.map((request) => request.receipts);
  return { decision, sent, kept: receipts.peek(AGENT).receipts };
}

describe('a review with pending receipts', () => {
  it('delivers the receipts (SV-3)', async () => {
    const result = { decision: 'approved', sent: [['receipt-1']], kept: [] };
    expect(await reviewed()).toEqual(result);
  });

  it.each([
    ['keeps', 'has a key that is not known yet', 'kid', ['receipt-1']],
    ['drops', 'is not valid', 'signature', []],
  ])(
    'is repeated without them and %s them if one %s (SV-6, TG-8)',
    async (_, _reason, check, kept) => {
      const error = new InvalidRequestError('RECEIPT_INVALID', 'Not valid.', { check });
      const sent = [['receipt-1'], []];
      expect(await reviewed(error)).toEqual({ decision: 'approved', sent, kept });
    },
  );

  it('is repeated without them and drops them if one belongs to another run (TG-8)', async () => {
    const error = new PermissionDeniedError('RECEIPT_WRONG_RUN', 'Of another run.');
    expect((await reviewed(error)).kept).toEqual([]);
  });

  it('fails with any other error', async () => {
    await expect(reviewed(new PreconditionError('RUN_ENDED', 'Ended.'))).rejects.toThrow('Ended.');
  });
});
