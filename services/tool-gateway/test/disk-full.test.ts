import { CallStatus } from '@writ/contracts/writ/identity/v1/claims_pb';
import { sql } from 'kysely';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { type Fixture, startFixture } from './gateway-fixture.ts';

let fixture: Fixture;

beforeEach(async () => {
  // Uses SQLite, because PostgreSQL cannot limit the size of a database; libs/store tests the disk-full error of
  // PostgreSQL.
  fixture = await startFixture({ config: { store: { dialect: 'sqlite', file: ':memory:' } } });
});

afterEach(() => fixture[Symbol.asyncDispose]());

/**
 * Sets the maximum number of database pages; SQLite then fails as on a full disk. A maximum of one page allows no
 * growth beyond the current size.
 */
async function limitPages(count: number): Promise<void> {
  await fixture.gateway.store.transaction(async (trx) => {
    await sql`pragma max_page_count = ${sql.lit(count)}`.execute(trx);
  });
}

describe('a gateway whose disk is full', () => {
  it('answers RESOURCE_EXHAUSTED, and accepts calls again once space is available (SYS-3, SYS-4)', async () => {
    await limitPages(1);
    let failure: unknown;
    let last = 0;
    for (; failure === undefined && last < 2_000; last += 1) {
      await fixture.call({ runId: `run_${last}` }).catch((error: unknown) => {
        failure = error;
      });
    }
    const runId = `run_${last - 1}`;
    expect(failure).toMatchObject({
      kind: 'resource_exhausted',
      reason: 'STORE_DISK_FULL',
      message: expect.stringMatching(/^disk full: .* cannot grow/),
    });
    const before = fixture.world.executions.length;
    await expect(fixture.call({ runId: 'run_refused' })).rejects.toMatchObject({
      reason: 'STORE_DISK_FULL',
    });
    expect(fixture.world.executions).toHaveLength(before);
    await limitPages(1_000_000);
    const { receipt } = await fixture.call({ runId });
    expect(receipt).not.toBe('');
    expect((await fixture.call({ runId: 'run_refused' })).status).toBe(CallStatus.OK);
    expect(fixture.world.executions.length).toBeLessThanOrEqual(last + 1);
  });

  it('rejects a call with another writ with the reason of the writ check (TG-1, SYS-3)', async () => {
    await limitPages(1);
    const { db } = fixture.gateway.store;
    let stored = 0;
    let made = 0;
    // Every call is stored as a refused attempt until the disk is full.
    while (stored === made && made < 2_000) {
      made += 1;
      const request = { ...(await fixture.request({ callId: `op-${made}` })), tool: 'look' };
      await expect(fixture.asWorker.callTool(request, { epoch: 1n })).rejects.toMatchObject({
        kind: 'permission_denied',
        reason: 'WRIT_MISMATCH',
      });
      stored = (await db.selectFrom('refusals').select('call_id').execute()).length;
    }
    expect(stored).toBe(made - 1);
  });
});
