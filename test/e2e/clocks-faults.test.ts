import { RunState } from '@writ/contracts/writ/run/v1/run_pb';
import type { ServiceName } from '@writ/identity';
import { startTestPlatform, type TestPlatform } from '@writ/testing/platform';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';

const REFUND = { agent: 'refund-worker', goal: 'Refund it.' };
const FAR = 'clock skew above threshold, health reports NOT_SERVING';
const LIMITS = { timeout: 60_000, interval: 50 };

describe('services whose clocks differ', () => {
  /** How far the clock of a service is ahead, ms. */
  const ahead = new Map<ServiceName, number>();
  const lines: { readonly msg?: string; readonly name?: string }[] = [];
  let test: TestPlatform;
  beforeAll(async () => {
    test = await startTestPlatform({
      // The services call each other over connections, as separate processes do.
      env: { WRIT_LOOPBACK: 'grpc', WRIT_LOG_LEVEL: 'error' },
      onLogLine: (line) => void lines.push(JSON.parse(line)),
      clockOf: (service) => ({
        now: () => new Date(Date.now() + (ahead.get(service) ?? 0)),
        monotonicMs: () => performance.now(),
      }),
    });
  });
  afterAll(() => test.close());

  const start = async (model: string): Promise<string> => {
    const request = { requestId: crypto.randomUUID(), ...REFUND, model };
    return (await test.client.runs.startRun(request)).run?.runId ?? '';
  };
  const runOf = async (runId: string) => (await test.client.runs.getRun({ runId })).run;

  const succeeds = async (runId: string): Promise<void> => {
    await vi.waitFor(async () => {
      const { state, result } = (await runOf(runId)) ?? {};
      expect({ state, stopReason: result?.stopReason }).toEqual({
        state: RunState.COMPLETED,
        stopReason: 'success',
      });
    }, LIMITS);
  };

  it.each([
    ['supervisor', -10_000],
    ['supervisor', 30_000],
    ['tool-gateway', -30_000],
    ['tool-gateway', 30_000],
    ['execution-meter', 30_000],
    ['execution-meter', -30_000],
    ['spawn-budget', 30_000],
    ['spawn-budget', -30_000],
    ['agent-worker', -30_000],
    ['agent-worker', 50_000],
  ] as const)(
    'complete runs when the clock of the %s steps by %i ms (BD-3)',
    async (service, stepMs) => {
      const waiting = await start('sim-escalate-1200');
      await vi.waitFor(async () => {
        expect((await runOf(waiting))?.state).toBe(RunState.SUSPENDED);
      }, LIMITS);
      ahead.set(service, stepMs);
      await succeeds(await start('sim-auto-1000'));
      const { approvals } = await test.client.approvals.listApprovals({ runId: waiting });
      await test.client.approvals.decideApproval({
        approvalId: approvals[0]?.approvalId ?? '',
        requestId: crypto.randomUUID(),
        answer: { case: 'reject', value: {} },
      });
      await vi.waitFor(async () => {
        expect((await runOf(waiting))?.result?.stopReason).toMatch(/reject|success/);
      }, LIMITS);
      ahead.delete(service);
      await succeeds(await start('sim-auto-1000'));
      expect(lines.filter(({ msg }) => msg === FAR)).toEqual([]);
    },
  );

  it('take a worker whose clock is an hour ahead out of service, and complete its runs once the clock is corrected (BD-3)', async () => {
    ahead.set('agent-worker', 3_600_000);
    await vi.waitFor(() => expect(lines.map(({ msg }) => msg)).toContain(FAR), LIMITS);
    const runId = await start('sim-auto-1000');
    ahead.delete('agent-worker');
    await succeeds(runId);
  });
});
