import type { RefusedAttempt } from '@writ/contracts/writ/supervision/v1/supervision_service_pb';
import { InvalidRequestError, sha256Hex, UnavailableError } from '@writ/kernel';
import { describe, expect, it, vi } from 'vitest';
import { insertRefusal } from '../src/store/refusals.ts';
import { startFixture } from './gateway-fixture.ts';

const QUICK = { receiptDelayMs: 0, receiptPollMs: 5, receiptRetryMaxMs: 10 };

const REFUSAL = {
  tenant: 'acme',
  run_id: 'run_1',
  agent_instance: 'payer-1',
  reason: 'WRIT_INVALID',
  field: '',
  writ_sha256: sha256Hex('writ'),
  refused_at: new Date(),
};

describe('unacknowledged receipts (TG-8)', () => {
  it('are delivered until the supervisor acknowledges them', async () => {
    const delivered: (readonly string[])[] = [];
    let acknowledge: (tokens: readonly string[]) => Promise<readonly string[]> = async () => {
      throw new UnavailableError('UNAVAILABLE', 'The supervisor is unreachable.');
    };
    const fixture = await startFixture({
      config: QUICK,
      onReceipts: async (tokens) => {
        delivered.push(tokens);
        return await acknowledge(tokens);
      },
    });
    try {
      const { receipt: first } = await fixture.call({ callId: 'op-1' });
      const { receipt: second } = await fixture.call({ callId: 'op-2', args: {} });
      await vi.waitUntil(() => delivered.length >= 3);
      expect(delivered.at(-1)).toContain(first);
      // The supervisor acknowledges one of two receipts; only the other receipt is delivered again.
      const idOf = async (token: string) => (await fixture.receipt(token)).id;
      const firstId = await idOf(first);
      acknowledge = async () => [firstId];
      await vi.waitUntil(() => delivered.at(-1)?.[0] === second);
      expect(delivered.at(-1)).toEqual([second]);
      acknowledge = (tokens) => Promise.all(tokens.map(idOf));
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

  it('are delivered after a restart', async () => {
    const delivered = new Set<string>();
    const fixture = await startFixture({
      config: { receiptPollMs: 5, receiptDelayMs: 0 },
      onReceipts: async (tokens) => {
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
      expect([...delivered]).toEqual([receipt]);
    } finally {
      await fixture[Symbol.asyncDispose]();
    }
  });
});

describe('receipts and refused attempts (TG-1, TG-8)', () => {
  it.each(['receipts', 'refusals'] as const)(
    'are delivered in separate calls: rejected %s do not block the others',
    async (rejected) => {
      let rejections = 0;
      const reject = () => {
        rejections += 1;
        throw new InvalidRequestError('INVALID_FIELD', 'The report is invalid.');
      };
      const idOf = async (token: string) => (await fixture.receipt(token)).id;
      const fixture = await startFixture({
        config: QUICK,
        onReceipts: async (tokens) =>
          rejected === 'receipts' ? reject() : Promise.all(tokens.map(idOf)),
        onRefusals: (attempts) =>
          rejected === 'refusals' ? reject() : attempts.map(({ refusalId }) => refusalId),
      });
      const { db } = fixture.gateway.store;
      const receipts = {
        create: () => fixture.call({ callId: 'op-1' }),
        pending: async () => {
          const open = db.selectFrom('receipts').select('call_id');
          return await open.where('acknowledged_at', 'is', null).execute();
        },
      };
      const refusals = {
        create: async () => {
          const request = { ...(await fixture.request({ callId: 'op-2' })), tool: 'look' };
          const refused = fixture.asWorker.callTool(request, { epoch: 1n });
          await expect(refused).rejects.toMatchObject({ reason: 'WRIT_MISMATCH' });
        },
        pending: async () => await db.selectFrom('refusals').select('call_id').execute(),
      };
      const isReceipts = rejected === 'receipts';
      const [blocked, other] = isReceipts ? [receipts, refusals] : [refusals, receipts];
      try {
        await blocked.create();
        await expect.poll(() => rejections).toBeGreaterThan(0);
        await other.create();
        await expect.poll(other.pending).toEqual([]);
        expect(await blocked.pending()).toHaveLength(1);
      } finally {
        await fixture[Symbol.asyncDispose]();
      }
    },
  );
});

describe('calls without a matching writ (TG-1)', () => {
  it('are reported with a replica name that the supervisor accepts (SYS-6, BD-1)', async () => {
    const reported = new Map<string, string>();
    const fixture = await startFixture({
      config: QUICK,
      onRefusals: (attempts) => {
        for (const { callId, presentedBy } of attempts) reported.set(callId, presentedBy);
        return attempts.map(({ refusalId }) => refusalId);
      },
    });
    try {
      // Rows written by a version that accepted any replica name in a service token.
      const names = { 'op-1': 'w'.repeat(129), 'op-2': 'w1\u0001', 'op-3': '\ud83d\ude00' };
      await fixture.gateway.store.transaction(async (trx) => {
        for (const [call_id, presented_by] of Object.entries(names)) {
          await insertRefusal(trx, { ...REFUSAL, refusal_id: call_id, call_id, presented_by });
        }
      });
      await expect
        .poll(() => Object.fromEntries(reported))
        .toEqual({ 'op-1': 'w'.repeat(128), 'op-2': 'w1?', 'op-3': '??' });
    } finally {
      await fixture[Symbol.asyncDispose]();
    }
  });

  it('are reported under one id per call until the supervisor acknowledges them, and then deleted (SV-8)', async () => {
    const reported: RefusedAttempt[] = [];
    let isAcknowledged = false;
    const fixture = await startFixture({
      config: QUICK,
      onRefusals: (attempts) => {
        reported.push(...attempts);
        return isAcknowledged ? attempts.map(({ refusalId }) => refusalId) : [];
      },
    });
    try {
      const request = { ...(await fixture.request()), tool: 'look' };
      for (const _ of [1, 2]) {
        await expect(fixture.asWorker.callTool(request, { epoch: 1n })).rejects.toMatchObject({
          reason: 'WRIT_MISMATCH',
        });
      }
      await vi.waitUntil(() => reported.length >= 2);
      expect(reported[0]).toMatchObject({
        tenant: 'acme',
        runId: 'run_1',
        agentInstance: 'payer-1',
        callId: 'op-1',
        reason: 'WRIT_MISMATCH',
        field: 'tool',
        writSha256: sha256Hex(request.writ ?? ''),
        presentedBy: 'test-1',
      });
      expect(new Set(reported.map(({ refusalId }) => refusalId)).size).toBe(1);
      isAcknowledged = true;
      const kept = () => fixture.gateway.store.db.selectFrom('refusals').selectAll().execute();
      await vi.waitUntil(async () => (await kept()).length === 0);
    } finally {
      await fixture[Symbol.asyncDispose]();
    }
  });
});
