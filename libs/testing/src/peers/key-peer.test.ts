import { KeyService } from '@writ/contracts/writ/identity/v1/key_service_pb';
import { createVerifier } from '@writ/identity';
import { ManualClock, Priority } from '@writ/kernel';
import { describe, expect, it } from 'vitest';
import { startKeyPeer } from './key-peer.ts';
import { addressOf, trustOf } from './trust-peers.ts';

describe('KeyPeer', () => {
  it('issues tokens that a verifier accepts with the keys it fetches from the peer (SYS-6)', async () => {
    const clock = new ManualClock();
    const supervisor = await startKeyPeer('supervisor', { clock });
    const worker = await startKeyPeer('agent-worker', { clock });
    const trust = trustOf([supervisor], worker.signer);
    const verifier = createVerifier({ trust, clock });
    const agent = { name: 'writer', instance: 'writer-1' };
    const { spawnBudgetToken } = await supervisor.agentCredentials({
      tenant: 'acme',
      runId: 'run-1',
      agent,
      priority: Priority.HIGH,
      tools: ['search'],
    });
    const { claims } = await verifier.verify('agent', spawnBudgetToken, {
      issuer: 'supervisor',
      audience: 'spawn-budget',
    });
    expect(claims).toMatchObject({ tenant: 'acme', agent, priority: 4, tools: ['search'] });
    const service = await worker.serviceToken('supervisor', { tenants: ['acme'] })();
    const { claims: caller } = await verifier.verify('service', service, {
      issuer: 'agent-worker',
      audience: 'supervisor',
    });
    expect(caller).toMatchObject({ name: 'agent-worker', tenants: ['acme'] });
    trust.close();
    await Promise.all([supervisor.close(), worker.close()]);
  });

  it('is found by addressOf, which returns an unreachable address for other services (SYS-4)', async () => {
    const meter = await startKeyPeer('execution-meter');
    const find = addressOf(meter);
    expect(find('execution-meter')).toBe(meter.address);
    const absent = meter.client(KeyService, {
      audience: 'tool-gateway',
      address: find('tool-gateway'),
    });
    await expect(absent.getKeys({})).rejects.toMatchObject({ kind: 'unavailable' });
    await meter.close();
    await meter.close();
  });
});
