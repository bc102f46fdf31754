import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { CallStatus } from '@writ/contracts/writ/identity/v1/claims_pb';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type Fixture, startFixture } from './gateway-fixture.ts';

let fixture: Fixture;

beforeAll(async () => {
  fixture = await startFixture({
    toolsFile: join(import.meta.dirname, '../../../examples/refund-desk/tools.yaml'),
  });
});

afterAll(() => fixture[Symbol.asyncDispose]());

function refundsIn(dataDir: string): number {
  const ledger = new DatabaseSync(join(dataDir, 'refund-ledger.db'), { readOnly: true });
  const row = ledger.prepare('SELECT count(*) AS refunds FROM refunds').get();
  ledger.close();
  return Number(row?.refunds);
}

const REFUND = {
  tool: 'issue_refund',
  args: { amount_usd: 800, reason: 'Paid twice.', user_id: 42 },
  callId: 'op-2',
};

describe('the refund desk behind the gateway', () => {
  it('declares its tools with their limits and risks', async () => {
    const { tools } = await fixture.asSupervisor.listTools({});
    expect(
      tools.map((tool) => [tool.name, tool.maxCallsPerAgent, tool.maxRepeats, tool.risk]),
    ).toEqual([
      ['get_refund_context', 3, 2, 0.1],
      ['issue_refund', 2, 1, 0.7],
      ['send_refund_email', 2, 1, 0.3],
    ]);
  });

  it('refunds once and returns the receipt fields that the policy requires (TG-1, TG-8)', async () => {
    expect(refundsIn(fixture.dataDir)).toBe(0);
    await expect(fixture.call({ ...REFUND, ttlMs: -1 })).rejects.toMatchObject({
      reason: 'WRIT_EXPIRED',
    });
    expect(refundsIn(fixture.dataDir)).toBe(0);
    const writ = { resultFields: ['refund.amount_usd', 'status'] };
    const answer = await fixture.call({ ...REFUND, writ });
    expect(answer.status).toBe(CallStatus.OK);
    expect((await fixture.receipt(answer.receipt)).claims.resultFields).toEqual({
      'refund.amount_usd': 800,
      status: 'ok',
    });
    expect(await fixture.call(REFUND)).toMatchObject({ replayed: true });
    expect(refundsIn(fixture.dataDir)).toBe(1);
  });

  it('refuses a refund without a reason (TG-3)', async () => {
    const args = { amount_usd: 1, user_id: 42 };
    expect(await fixture.call({ ...REFUND, callId: 'op-3', args })).toMatchObject({
      stopReason: 'tool_bad_args:issue_refund',
      message: 'Argument reason is required and missing.',
    });
  });
});
