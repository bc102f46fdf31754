import { ApprovalState } from '@writ/contracts/writ/approval/v1/approval_pb';
import { AgentWorkerService } from '@writ/contracts/writ/worker/v1/agent_worker_service_pb';
import { ManualClock } from '@writ/kernel';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { openApprovals } from '../src/store/approval/approvals.ts';
import { CONTEXT, finalText, LOOK_UP, RefundHarness, refund } from './refund-harness.ts';
import { openSecondStore } from './supervisor-under-test.ts';

const REJECT = { case: 'reject', value: {} } as const;

describe('approvals in lists and watches', () => {
  let harness: RefundHarness;
  beforeEach(async () => {
    harness = await RefundHarness.start();
  });
  afterEach(() => harness.close());

  it('are listed newest first, with filters and pages (SV-5)', async () => {
    const first = await harness.agent();
    const ids: string[] = [];
    for (const call of ['op-1', 'op-2', 'op-3']) {
      ids.unshift((await first.propose(call, refund(1200))).approvalId);
    }
    const { approvalId: other } = await (await harness.agent()).propose('op-1', refund(1200));
    const list = (filter: object) => harness.approvals().listApprovals(filter);
    expect((await list({})).approvals.map((one) => one.approvalId).toSorted()).toEqual(
      [other, ...ids].toSorted(),
    );
    const filters = { runId: first.scope.runId, tool: 'issue_refund', pageSize: 2 };
    const page = await list(filters);
    const second = await list({ ...filters, pageToken: page.nextPageToken });
    const seen = [...page.approvals, ...second.approvals].map((one) => one.approvalId);
    expect(seen.toSorted()).toEqual(ids.toSorted());
    expect(second.nextPageToken).toBe('');
    await expect(list({ tool: 'other', pageToken: page.nextPageToken })).rejects.toMatchObject({
      reason: 'INVALID_PAGE_TOKEN',
    });
    const tampered = Buffer.from(page.nextPageToken, 'base64url')
      .toString()
      .replace(/T[^"]*/, 'x');
    await expect(
      list({ ...filters, pageToken: Buffer.from(tampered).toString('base64url') }),
    ).rejects.toMatchObject({ reason: 'INVALID_PAGE_TOKEN' });
    expect((await list({ agentName: 'unknown' })).approvals).toEqual([]);
    await harness
      .approvals()
      .decideApproval({ approvalId: other, requestId: 'd-1', answer: REJECT });
    const pending = await list({ states: [ApprovalState.PENDING] });
    expect(pending.approvals).toHaveLength(3);
  });

  it('are watched: pending ones first, then every change (SV-5)', async () => {
    const agent = await harness.agent();
    const one = await agent.propose('op-1', refund(1200));
    const seen: (readonly [string, ApprovalState])[] = [];
    let two: string | undefined;
    for await (const { approval, heartbeat } of harness.approvals().watchApprovals({})) {
      if (heartbeat) continue;
      seen.push([approval?.callId ?? '', approval?.state ?? 0]);
      if (seen.length === 1) two = (await agent.propose('op-2', refund(1200))).approvalId;
      if (seen.length === 2) {
        await harness.approvals().decideApproval({
          approvalId: one.approvalId,
          requestId: 'd-1',
          answer: REJECT,
        });
      }
      if (seen.length === 3) break;
    }
    expect(two).toBeDefined();
    expect(seen).toEqual([
      ['op-1', ApprovalState.PENDING],
      ['op-2', ApprovalState.PENDING],
      ['op-1', ApprovalState.REJECTED],
    ]);
  });
});

describe('approvals with a time limit', () => {
  const clock = new ManualClock(new Date());
  let harness: RefundHarness;
  beforeEach(async () => {
    harness = await RefundHarness.start({ clock, config: { approvalTtlMs: 60_000 } });
  });
  afterEach(() => harness.close());

  it('end the action with approval_expired and cannot be decided after they expire (SV-5)', async () => {
    const agent = await harness.agent();
    const { approvalId } = await agent.propose('op-1', refund(1200));
    clock.advance(60_000);
    const { fakes } = harness.supervisor;
    await fakes.called(AgentWorkerService.method.signal);
    const [signal] = fakes.requests(AgentWorkerService.method.signal);
    expect(signal?.approval?.decision).toMatchObject({
      settled: true,
      stopReason: 'approval_expired',
    });
    const { approval } = await harness.approvals().getApproval({ approvalId });
    expect(approval?.state).toBe(ApprovalState.EXPIRED);
    await expect(
      harness.approvals().decideApproval({ approvalId, requestId: 'd-1', answer: REJECT }),
    ).rejects.toMatchObject({
      reason: 'APPROVAL_DECIDED',
      message: expect.stringContaining('without an answer'),
    });
  });

  it('expire even if an approval that expired earlier cannot be settled (SV-5)', async () => {
    const agent = await harness.agent();
    const { approvalId: broken } = await agent.propose('op-1', refund(1200));
    clock.advance(1);
    const { approvalId } = await agent.propose('op-2', refund(1200));
    const secondStore = await openSecondStore(harness.supervisor);
    // An approval whose decision is missing cannot be settled.
    await secondStore.transaction(async (trx) => {
      const approval = trx.updateTable('approvals').where('approval_id', '=', broken);
      await approval.set({ call_id: 'op-9' }).execute();
    });
    await secondStore.close();
    clock.advance(60_000);
    const stateNow = async () =>
      (await harness.approvals().getApproval({ approvalId })).approval?.state;
    await expect.poll(stateNow, { interval: 10 }).toBe(ApprovalState.EXPIRED);
  });

  it('are watched while the clock is set back (SV-5, BD-3)', async () => {
    const agent = await harness.agent();
    const { approvalId } = await agent.propose('op-1', refund(1200));
    const seen: (ApprovalState | undefined)[] = [];
    for await (const { approval } of harness.approvals().watchApprovals({})) {
      seen.push(approval?.state);
      if (seen.length === 2) break;
      clock.step(-30_000);
      const decision = { approvalId, requestId: 'd-1', answer: REJECT };
      await harness.approvals().decideApproval(decision);
    }
    expect(seen).toEqual([ApprovalState.PENDING, ApprovalState.REJECTED]);
  });

  it('survive a restart', async () => {
    const agent = await harness.agent();
    const { approvalId } = await agent.propose('op-1', refund(1200));
    await harness.supervisor.stop();
    await harness.supervisor.restart();
    const { approval } = await harness.approvals().getApproval({ approvalId });
    expect(approval?.state).toBe(ApprovalState.PENDING);
    const receipt = await agent.execute('op-2', LOOK_UP, CONTEXT);
    const final = await agent.propose('op-3', finalText('Done.'), { receipts: [receipt] });
    expect(final.runEnded).toBe(true);
  });

  it.skipIf(process.env.WRIT_TEST_POSTGRES_URL !== undefined).each(['tenant', 'run'] as const)(
    'are watched by %s without reading approvals that were closed earlier (SV-5, BD-2)',
    async (of) => {
      const store = await openSecondStore(harness.supervisor);
      try {
        const values = { tenant: 'acme', runId: 'run-1', since: new Date() };
        const query = openApprovals(store.db, values, of).compile();
        const plan = await store.db.executeQuery<{ detail: string }>({
          ...query,
          sql: `explain query plan ${query.sql}`,
        });
        const details = plan.rows.map(({ detail }) => detail).join('\n');
        expect(details).toMatch(of === 'run' ? /\(tenant=\? AND run_id=\?\)/ : /approvals_pending/);
        expect(details).toMatch(/approvals_closed \(tenant=\? AND decided_at>\?\)/);
      } finally {
        await store.close();
      }
    },
  );
});
