import { CallStatus } from '@writ/contracts/writ/identity/v1/claims_pb';
import type { CallToolResponse } from '@writ/contracts/writ/tool/v1/tool_gateway_service_pb';
import { ToolGatewayService } from '@writ/contracts/writ/tool/v1/tool_gateway_service_pb';
import { ResultKind } from '@writ/contracts/writ/tool/v1/tool_pb';
import { startKeyPeer } from '@writ/testing';
import { describe, expect, it, onTestFinished } from 'vitest';
import { FakeGateway } from '../../services/agent-worker/test/fake-gateway.ts';
import { FaultSwitches } from '../../services/agent-worker/test/fault-switches.ts';
import { startFixture } from '../../services/tool-gateway/test/gateway-fixture.ts';

/** A call of the suite; its writ matches unless `writ` says otherwise. */
interface Call {
  readonly callId: string;
  readonly variant?: 1 | 2;
  readonly writ?: 'expired' | 'of another call';
}

interface Gateway {
  call(call: Call): Promise<CallToolResponse>;
  /** Number of executions. */
  executed(): number;
}

async function fakeGateway(): Promise<Gateway> {
  const fake = new FakeGateway(new FaultSwitches());
  const peer = await startKeyPeer('tool-gateway', { routes: fake.routes() });
  const worker = await startKeyPeer('agent-worker');
  onTestFinished(async () => {
    await worker.close();
    await peer.close();
  });
  const to = { audience: 'tool-gateway', address: peer.address } as const;
  const client = worker.client(ToolGatewayService, to);
  return {
    call: async ({ callId, variant = 1, writ }) => {
      const token = `writ-${writ === 'of another call' ? 'op-other' : callId}-1`;
      if (writ === 'expired') fake.expired.add(token);
      return await client.callTool({
        call: { tenant: 'acme', runId: 'run-1', agentInstance: 'refund-desk-1', callId },
        tool: 'issue_refund',
        argumentsJson: JSON.stringify({ amount_usd: variant }),
        writ: token,
      });
    },
    executed: () => fake.executed.length,
  };
}

async function realGateway(): Promise<Gateway> {
  const fixture = await startFixture();
  onTestFinished(() => fixture[Symbol.asyncDispose]());
  return {
    call: async ({ callId, variant = 1, writ }) =>
      await fixture.call({
        callId,
        args: { to: 'anna', cents: variant },
        ...(writ === 'expired' && { ttlMs: -1 }),
        ...(writ === 'of another call' && { writ: { callId: 'op-other' } }),
      }),
    executed: () => fixture.world.executions.length,
  };
}

describe.each([
  ['the gateway', realGateway],
  ["the worker's fake gateway", fakeGateway],
])('CallTool of %s', (_, start) => {
  it('executes a call once, and answers a repeat with the recorded response, even after the writ has expired (TG-1)', async () => {
    const gateway = await start();
    const first = await gateway.call({ callId: 'op-1' });
    expect(first).toMatchObject({
      status: CallStatus.OK,
      result: { kind: ResultKind.JSON },
      replayed: false,
    });
    expect(JSON.parse(first.result?.content ?? '')).toMatchObject({ status: 'ok' });
    expect(first.receipt).not.toBe('');
    for (const repeat of [{}, { writ: 'expired' }] as const) {
      const again = await gateway.call({ callId: 'op-1', ...repeat });
      expect(again).toEqual({ ...first, replayed: true });
    }
    expect(gateway.executed()).toBe(1);
  });

  it('denies an expired writ and the writ of another call, and executes nothing (TG-1)', async () => {
    const gateway = await start();
    await expect(gateway.call({ callId: 'op-1', writ: 'of another call' })).rejects.toMatchObject({
      kind: 'permission_denied',
      reason: 'WRIT_MISMATCH',
    });
    await expect(gateway.call({ callId: 'op-2', writ: 'expired' })).rejects.toMatchObject({
      kind: 'permission_denied',
      reason: 'WRIT_EXPIRED',
    });
    expect(gateway.executed()).toBe(0);
  });

  it('denies a call_id that was used for other arguments (TG-1)', async () => {
    const gateway = await start();
    await gateway.call({ callId: 'op-1' });
    await expect(gateway.call({ callId: 'op-1', variant: 2 })).rejects.toMatchObject({
      kind: 'permission_denied',
      reason: 'WRIT_MISMATCH',
    });
    expect(gateway.executed()).toBe(1);
  });
});
