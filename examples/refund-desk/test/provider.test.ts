import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { ResultKind } from '@writ/contracts/writ/tool/v1/tool_pb';
import { ToolProviderService } from '@writ/contracts/writ/tool/v1/tool_provider_service_pb';
import { createTelemetry } from '@writ/telemetry';
import { type KeyPeer, startKeyPeer } from '@writ/testing';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { readLedger } from '../src/ledger.ts';
import { type ServedTools, serveTools } from '../src/serve-tools.ts';

let dataDir: string;
let gateway: KeyPeer;
let otherPeer: KeyPeer;
let served: ServedTools;

beforeAll(async () => {
  dataDir = mkdtempSync(join(tmpdir(), 'writ-refund-'));
  gateway = await startKeyPeer('tool-gateway');
  otherPeer = await startKeyPeer('agent-worker');
  served = await serveTools(
    { host: '127.0.0.1', port: 0, dataDir, gatewayAddress: gateway.address },
    createTelemetry({ service: 'refund-tools', logLevel: 'silent' }),
  );
});

afterAll(async () => {
  await gateway.close();
  await otherPeer.close();
  await served.close();
  rmSync(dataDir, { recursive: true, force: true });
});

const clientOf = (peer: KeyPeer, audience: 'tool-provider' | 'tool-gateway' = 'tool-provider') =>
  peer.client(ToolProviderService, { audience, address: served.address });

const INVOCATION = {
  tool: 'issue_refund',
  argumentsJson: '{"amount_usd":800,"reason":"Paid twice.","user_id":42}',
  idempotencyKey: 'idem_1',
  tenant: 'acme',
  runId: 'run_1',
  agentName: 'refund-worker',
  callId: 'op-1',
};

describe('the refund tools as a tool provider (TG-6)', () => {
  it('describes its tools', async () => {
    const { tools } = await clientOf(gateway).describeTools({});
    expect(tools.map(({ name }) => name)).toEqual([
      'get_refund_context',
      'issue_refund',
      'send_refund_email',
    ]);
    expect(JSON.parse(tools[1]?.inputSchemaJson ?? '')).toMatchObject({ type: 'object' });
  });

  it('runs a tool for the gateway, once per idempotency key', async () => {
    const { outcome } = await clientOf(gateway).invoke(INVOCATION);
    expect(outcome).toMatchObject({ case: 'result', value: { kind: ResultKind.JSON } });
    expect((await clientOf(gateway).invoke(INVOCATION)).outcome).toEqual(outcome);
    expect(readLedger(dataDir).refunds).toHaveLength(1);
  });

  it('distinguishes an unknown tool from invalid arguments', async () => {
    await expect(
      clientOf(gateway).invoke({ ...INVOCATION, tool: 'toString' }),
    ).rejects.toMatchObject({ reason: 'TOOL_NOT_FOUND' });
    await expect(
      clientOf(gateway).invoke({ ...INVOCATION, argumentsJson: '[' }),
    ).rejects.toMatchObject({ kind: 'invalid_argument' });
  });

  it('rejects other callers (SYS-6)', async () => {
    await expect(clientOf(otherPeer).invoke(INVOCATION)).rejects.toBeDefined();
    await expect(clientOf(gateway, 'tool-gateway').invoke(INVOCATION)).rejects.toMatchObject({
      kind: 'unauthenticated',
    });
    expect(readLedger(dataDir).refunds).toHaveLength(1);
  });
});
