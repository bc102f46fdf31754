import { UnavailableError } from '@writ/kernel';
import { describe, expect, it, vi } from 'vitest';
import { startFixture } from './gateway-fixture.ts';

const QUICK = { receiptDelayMs: 0, receiptPollMs: 5, receiptRetryMaxMs: 10 };

describe('receipts that nobody has acknowledged (TG-8)', () => {
  it('are delivered again until the supervisor has them, and then no more', async () => {
    const delivered: (readonly string[])[] = [];
    let take: (tokens: readonly string[]) => Promise<readonly string[]> = async () => {
      throw new UnavailableError('AWAY', 'The supervisor is away.');
    };
    const fixture = await startFixture({
      config: QUICK,
      takeReceipts: async (tokens) => {
        delivered.push(tokens);
        return await take(tokens);
      },
    });
    try {
      const { receipt: first } = await fixture.call({ callId: 'op-1' });
      const { receipt: second } = await fixture.call({ callId: 'op-2', args: {} });
      await vi.waitUntil(() => delivered.length >= 3);
      expect(delivered.at(-1)).toContain(first);
      // It takes one of two: the other one comes again, alone.
      const idOf = async (token: string) => (await fixture.receipt(token)).id;
      const firstId = await idOf(first);
      take = async () => [firstId];
      await vi.waitUntil(() => delivered.at(-1)?.[0] === second);
      expect(delivered.at(-1)).toEqual([second]);
      take = (tokens) => Promise.all(tokens.map(idOf));
      const open = () =>
        fixture.gateway.store.db
          .selectFrom('receipts')
          .select('receipt_id')
          .where('acknowledged_at', 'is', null)
          .execute();
      await vi.waitUntil(async () => (await open()).length === 0);
      expect(fixture.gateway.store.commits).toBe(3);
    } finally {
      await fixture[Symbol.asyncDispose]();
    }
  });

  it('are delivered after a restart, too', async () => {
    const delivered = new Set<string>();
    const fixture = await startFixture({
      config: { receiptPollMs: 5, receiptDelayMs: 0 },
      takeReceipts: async (tokens) => {
        for (const token of tokens) delivered.add(token);
        return [];
      },
    });
    try {
      const { receipt } = await fixture.call();
      await vi.waitUntil(() => delivered.has(receipt));
      delivered.clear();
      await fixture.crash();
      await vi.waitUntil(() => delivered.has(receipt));
    } finally {
      await fixture[Symbol.asyncDispose]();
    }
  });
});
