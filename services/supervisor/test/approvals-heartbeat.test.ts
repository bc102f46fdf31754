import { createWritClient } from '@writ/client';
import { ApprovalState } from '@writ/contracts/writ/approval/v1/approval_pb';
import { startFaultProxy } from '@writ/testing/faults';
import { afterEach, beforeEach, describe, expect, it, onTestFinished } from 'vitest';
import { RefundHarness, refund, type TestAgent } from './refund-harness.ts';

const SILENCE_MS = 1_000;
const REJECT = { case: 'reject', value: {} } as const;

describe('heartbeats of a watch of approvals', () => {
  let harness: RefundHarness;
  let agent: TestAgent;
  beforeEach(async () => {
    harness = await RefundHarness.start({ config: { watchHeartbeatMs: 100 } });
    agent = await harness.agent();
  });
  afterEach(() => harness.close());

  const escalate = async (callId: string) => (await agent.propose(callId, refund(1200))).approvalId;
  const reject = (approvalId: string) =>
    harness.approvals().decideApproval({ approvalId, requestId: approvalId, answer: REJECT });

  it('are sent while no approval opens or closes (SV-5, SYS-4)', async () => {
    const seen: string[] = [];
    for await (const { approval, heartbeat } of harness.approvals().watchApprovals({})) {
      expect(heartbeat).toBe(approval === undefined);
      seen.push(approval?.callId ?? 'heartbeat');
      if (seen.length === 2) await escalate('op-1');
      if (seen.includes('op-1') && heartbeat) break;
    }
    expect(seen.slice(0, 2)).toEqual(['heartbeat', 'heartbeat']);
    expect(seen.filter((one) => one !== 'heartbeat')).toEqual(['op-1']);
  });

  it('are sent at once if no approval is pending (SV-5, SYS-4)', async () => {
    const slow = await RefundHarness.start({ config: { watchHeartbeatMs: 600_000 } });
    onTestFinished(() => slow.close());
    for await (const { heartbeat } of slow.approvals().watchApprovals({})) {
      expect(heartbeat).toBe(true);
      break;
    }
  });

  it('let the client library resume a silent watch without gaps or duplicates (SV-5, SYS-4)', async () => {
    let connections = 0;
    const wire = await startFaultProxy(() => {
      connections += 1;
      // The proxy serves every connection after the silent one.
      if (connections === 2) setImmediate(() => wire.fail('none'));
      return harness.supervisor.service.edgeAddress ?? '';
    });
    onTestFinished(() => wire.close());
    const { approvals } = createWritClient({
      baseUrl: `http://${wire.address}`,
      apiKey: harness.supervisor.apiKey('anna'),
      silenceMs: SILENCE_MS,
    });
    const first = await escalate('op-1');
    const second = await escalate('op-2');
    const seen: (readonly [string | undefined, ApprovalState | undefined])[] = [];
    for await (const { approval } of approvals.watchApprovals({})) {
      seen.push([approval?.callId, approval?.state]);
      if (seen.length === 2) {
        // The connection stays open, like a connection to a paused supervisor.
        wire.fail('stalled');
        await reject(first);
        await escalate('op-3');
      }
      if (seen.length === 4) await reject(second);
      if (seen.length === 5) break;
    }
    expect(
      seen
        .slice(0, 2)
        .map(([callId]) => callId)
        .toSorted(),
    ).toEqual(['op-1', 'op-2']);
    expect(seen.slice(2)).toEqual([
      ['op-1', ApprovalState.REJECTED],
      ['op-3', ApprovalState.PENDING],
      ['op-2', ApprovalState.REJECTED],
    ]);
  });
});
