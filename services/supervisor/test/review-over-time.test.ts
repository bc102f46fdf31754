import { Verdict } from '@writ/contracts/writ/review/v1/decision_pb';
import { ManualClock } from '@writ/kernel';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { LOOK_UP, RefundHarness, refund } from './refund-harness.ts';
import { refundTools } from './refund-tools.ts';

describe('ReviewAction over time', () => {
  const clock = new ManualClock(new Date());
  let harness: RefundHarness;
  beforeEach(async () => {
    harness = await RefundHarness.start({ clock, config: { sweepMs: 60_000 } });
  });
  afterEach(() => harness.close());

  it('approves nothing before the gateway has listed its tools (SYS-4)', async () => {
    harness.stopGateway();
    const agent = await harness.agent();
    await expect(agent.propose('op-1', LOOK_UP)).rejects.toMatchObject({
      reason: 'TOOL_LIST_UNAVAILABLE',
      kind: 'unavailable',
    });
    harness.listTools();
    // The failed review recorded nothing, not even the step.
    expect(await agent.propose('op-1', LOOK_UP)).toMatchObject({ step: 1, settled: true });
  });

  it('uses the cached tool list while the gateway is unavailable, and follows a changed registry', async () => {
    const agent = await harness.agent();
    await agent.propose('op-1', LOOK_UP);
    harness.stopGateway();
    clock.advance(3_000);
    expect((await agent.propose('op-2', LOOK_UP)).verdict).toBe(Verdict.APPROVE);
    harness.listTools(
      refundTools().map((tool) => ({ ...tool, definitionDigest: 'changed' })),
      'v2',
    );
    clock.advance(3_000);
    const claims = await harness.writClaims(agent, await agent.propose('op-3', refund(1)));
    expect(claims.definitionDigest).toBe('changed');
  });

  it('stops an agent that exceeds its active time (EM-1)', async () => {
    const agent = await harness.agent();
    await agent.propose('op-1', LOOK_UP);
    clock.advance(30_001);
    expect(await agent.propose('op-2', LOOK_UP)).toMatchObject({
      verdict: Verdict.BLOCK,
      stopReason: 'max_seconds',
      writ: '',
    });
  });

  it('does not count the time of a human decision (EM-1, SV-5)', async () => {
    const agent = await harness.agent();
    await agent.propose('op-1', refund(1200));
    clock.advance(600_000);
    const now = await agent.propose('op-2', LOOK_UP);
    expect(now.verdict).toBe(Verdict.APPROVE);
  });
});
