import { createHash } from 'node:crypto';
import { timestampNow } from '@bufbuild/protobuf/wkt';
import { CallStatus } from '@writ/contracts/writ/identity/v1/claims_pb';
import { KeyService } from '@writ/contracts/writ/identity/v1/key_service_pb';
import { SupervisionService } from '@writ/contracts/writ/supervision/v1/supervision_service_pb';
import { mintReceipt } from '@writ/identity';
import { newId, sha256Hex } from '@writ/kernel';
import { createRpcClient, type RpcClient } from '@writ/rpc';
import { createTelemetry } from '@writ/telemetry';
import { startKeyPeer } from '@writ/testing';
import { describe, expect, it, onTestFinished } from 'vitest';
import { openTestPeers } from '../../clients/cli/src/commands/gateway/test-peers.ts';
import { CONTEXT, LOOK_UP, RefundHarness } from '../../services/supervisor/test/refund-harness.ts';

/** A supervisor as a gateway sees it. */
interface Supervisor {
  readonly asGateway: RpcClient<typeof SupervisionService>;
  readonly asWorker: RpcClient<typeof SupervisionService>;
  /** A receipt that the gateway signed for an approved call. */
  receipt(): Promise<string>;
  /** Addresses of the key services that a gateway reads, by service. */
  readonly keyServices: Readonly<Record<string, string>>;
}

async function realSupervisor(): Promise<Supervisor> {
  const harness = await RefundHarness.start();
  onTestFinished(() => harness.close());
  const { fakes, service } = harness.supervisor;
  const to = { audience: 'supervisor', address: service.address } as const;
  return {
    asGateway: fakes.peer('tool-gateway').client(SupervisionService, to),
    asWorker: fakes.peer('agent-worker').client(SupervisionService, to),
    receipt: async () => {
      const agent = await harness.agent();
      return await agent.execute('op-1', LOOK_UP, CONTEXT);
    },
    keyServices: { supervisor: service.address },
  };
}

async function verificationPeers(): Promise<Supervisor> {
  const gateway = await startKeyPeer('tool-gateway');
  const worker = await startKeyPeer('agent-worker');
  const anywhere = '127.0.0.1:0';
  const listeners = { supervisor: anywhere, worker: anywhere, tools: anywhere };
  const peers = await openTestPeers(listeners, () => gateway.address, [], undefined);
  onTestFinished(async () => {
    await peers.close();
    await worker.close();
    await gateway.close();
  });
  const to = { audience: 'supervisor', address: peers.addresses.supervisor } as const;
  return {
    asGateway: gateway.client(SupervisionService, to),
    asWorker: worker.client(SupervisionService, to),
    receipt: async () => {
      const { token } = await mintReceipt(gateway.signer, {
        tenant: 'acme',
        runId: newId('run'),
        agent: { name: 'payer', instance: 'payer-1' },
        callId: 'op-1',
        tool: 'pay',
        writId: 'writ-1',
        status: CallStatus.OK,
        resultSha256: sha256Hex('{}'),
        argsSha256: sha256Hex('{}'),
        revision: 1,
      });
      return token;
    },
    keyServices: {
      supervisor: peers.addresses.supervisor,
      'agent-worker': peers.addresses.worker,
    },
  };
}

describe.each([
  ['the supervisor', realSupervisor],
  ['the peers of writ gateway verify', verificationPeers],
])('%s as a gateway sees it', (_, start) => {
  it('acknowledges a receipt by its id, immediately or when it is reported again (TG-8)', async () => {
    const supervisor = await start();
    const receipt = await supervisor.receipt();
    await supervisor.asGateway.reportReceipts({ receipts: [receipt] });
    for (let time = 0; time < 2; time += 1) {
      const again = await supervisor.asGateway.reportReceipts({ receipts: [receipt] });
      expect(again.acknowledgedReceiptIds).toEqual([expect.stringMatching(/^rcpt_/)]);
      expect(again.acknowledgedRefusalIds).toEqual([]);
    }
  });

  it('acknowledges a refused attempt, also when it is reported again (TG-1, SV-8)', async () => {
    const supervisor = await start();
    const refusal = {
      refusalId: newId('refusal'),
      tenant: 'acme',
      runId: 'run_1',
      agentInstance: 'payer-1',
      callId: 'op-1',
      reason: 'WRIT_MISMATCH',
      field: 'tool',
      refuseTime: timestampNow(),
    };
    for (let time = 0; time < 2; time += 1) {
      const reported = await supervisor.asGateway.reportReceipts({ refusals: [refusal] });
      expect(reported.acknowledgedRefusalIds).toEqual([refusal.refusalId]);
      expect(reported.acknowledgedReceiptIds).toEqual([]);
    }
  });

  it('denies the reports of a worker (SYS-6)', async () => {
    const supervisor = await start();
    const receipts = [await supervisor.receipt()];
    // A service that calls no RPC of this server may be missing from the trust list of the server; its call then fails
    // with unavailable.
    await expect(supervisor.asWorker.reportReceipts({ receipts })).rejects.toMatchObject({
      kind: expect.stringMatching(/^(permission_denied|unavailable)$/),
    });
  });

  it('publishes its Ed25519 keys under their thumbprints, and returns no key for an unknown id (TG-8)', async () => {
    const { keyServices } = await start();
    const telemetry = createTelemetry({ service: 'test', logLevel: 'silent' });
    for (const [service, address] of Object.entries(keyServices)) {
      const client = createRpcClient(KeyService, { address, telemetry });
      onTestFinished(() => client.close());
      const published = await client.getKeys({});
      expect(published.service).toBe(service);
      expect(published.keys.length).toBeGreaterThan(0);
      for (const key of published.keys) {
        const { kty, crv, x } = JSON.parse(key.jwkJson) as Readonly<Record<string, string>>;
        expect({ kty, crv }).toEqual({ kty: 'OKP', crv: 'Ed25519' });
        const canonical = JSON.stringify({ crv, kty, x });
        const thumbprint = createHash('sha256').update(canonical).digest('base64url');
        expect(key.keyId).toBe(thumbprint);
        expect(key.notBefore).toBeDefined();
        expect((await client.getKeys({ keyId: key.keyId })).keys).toEqual([key]);
      }
      const unknown = createHash('sha256').update('unknown').digest('base64url');
      expect((await client.getKeys({ keyId: unknown })).keys).toEqual([]);
    }
  });
});
