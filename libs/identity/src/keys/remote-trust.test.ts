import type { ManualClock } from '@writ/kernel';
import { createRpcServer, type RpcServer } from '@writ/rpc';
import { createTelemetry } from '@writ/telemetry';
import { describe, expect, it, onTestFinished } from 'vitest';
import { CLAIMS, createWorld, ISSUED, tokenOf, type World } from '../../test/fixtures.ts';
import { internalGate } from '../services/internal-gate.ts';
import type { ServiceName } from '../services/names.ts';
import { createVerifier } from '../tokens/verifier.ts';
import { keyRoute } from './key-route.ts';
import { type Addresses, createTrust } from './remote-trust.ts';
import { openSigner } from './signer.ts';

const telemetry = createTelemetry({ service: 'test', logLevel: 'silent' });

/** Serves the keys of a service behind the internal gate. */
async function serveKeys({ signers, verifier }: World, service: ServiceName): Promise<RpcServer> {
  const server = await createRpcServer({
    host: '127.0.0.1',
    port: 0,
    routes: [keyRoute(signers[service])],
    gate: internalGate({ service, verifier, enforceSlotGrants: true }),
    telemetry,
  });
  onTestFinished(() => server.close(0));
  return server;
}

/**
 * Creates a verifier like that of another process: it has only the addresses of the services and fetches their keys.
 */
function verifierAt(addresses: () => Addresses | Promise<Addresses>, clock: ManualClock) {
  const trust = createTrust({ addresses, telemetry, clock, timeoutMs: 2_000 });
  onTestFinished(() => trust.close());
  return createVerifier({ trust, clock });
}

describe('trust by address', () => {
  it('fetches keys over the wire, across rotation and a change of address', async () => {
    const world = await createWorld();
    const { supervisor } = world.signers;
    const first = await serveKeys(world, 'supervisor');
    let address = first.address;
    const verifier = verifierAt(async () => ({ supervisor: address }), world.clock);
    const old = await tokenOf(world, 'agent');
    await verifier.verify('agent', old, ISSUED.agent);
    await first.close(0);
    address = (await serveKeys(world, 'supervisor')).address;
    await supervisor.rotate();
    world.clock.advance(1_000);
    await verifier.verify('agent', await tokenOf(world, 'agent'), ISSUED.agent);
    await verifier.verify('agent', old, ISSUED.agent);
  });

  it('fetches a new key from a replica that read the shared key file before the rotation (SV-6, TG-1)', async () => {
    const world = await createWorld();
    const { clock, keyDir } = world;
    const other = await openSigner({ service: 'supervisor', keyDir, clock });
    // The verifier calls the replica that has not rotated the key.
    const { address } = await serveKeys(world, 'supervisor');
    const verifier = verifierAt(() => ({ supervisor: address }), clock);
    await verifier.verify('agent', await tokenOf(world, 'agent'), ISSUED.agent);
    clock.advance(1_000);
    await world.signers.supervisor.refresh();
    await other.rotate();
    const { token } = await other.sign('agent', {
      ...ISSUED.agent,
      claims: CLAIMS.agent,
      ttlMs: 60_000,
    });
    await verifier.verify('agent', token, ISSUED.agent);
  });

  it('respects the not_after of a retired key (TG-1)', async () => {
    const world = await createWorld();
    const { address } = await serveKeys(world, 'supervisor');
    const { token } = await world.signers.supervisor.sign('agent', {
      ...ISSUED.agent,
      claims: CLAIMS.agent,
      ttlMs: 60_000,
    });
    await world.signers.supervisor.rotate({ oldKeyValidForMs: 10_000 });
    world.clock.advance(10_000);
    const verifier = verifierAt(() => ({ supervisor: address }), world.clock);
    await expect(verifier.verify('agent', token, ISSUED.agent)).rejects.toThrow(
      'has retired its key',
    );
  });

  it('rejects keys that another service serves at the address, and an issuer without an address (SYS-4)', async () => {
    const world = await createWorld();
    const { address } = await serveKeys(world, 'agent-worker');
    const token = await tokenOf(world, 'agent');
    const at = (addresses: Addresses) =>
      verifierAt(() => addresses, world.clock).verify('agent', token, ISSUED.agent);
    await expect(at({ supervisor: address })).rejects.toThrow(
      'The keys of supervisor are unavailable: its address belongs to agent-worker.',
    );
    await expect(at({ 'agent-worker': address })).rejects.toThrow(
      'The keys of supervisor are unavailable: it has no address in the trust list.',
    );
  });

  it('is unavailable while the server is down, and recovers (SYS-4)', async () => {
    const world = await createWorld();
    const stopped = await serveKeys(world, 'supervisor');
    await stopped.close(0);
    let { address } = stopped;
    const verifier = verifierAt(() => ({ supervisor: address }), world.clock);
    const token = await tokenOf(world, 'agent');
    await expect(verifier.verify('agent', token, ISSUED.agent)).rejects.toMatchObject({
      kind: 'unavailable',
      reason: 'KEYS_UNAVAILABLE',
    });
    address = (await serveKeys(world, 'supervisor')).address;
    world.clock.advance(1_000);
    await verifier.verify('agent', token, ISSUED.agent);
  });

  it('uses the local signer for the keys of its own service', async () => {
    const world = await createWorld();
    const trust = createTrust({ addresses: {}, telemetry, self: world.signers.supervisor });
    const verifier = createVerifier({ trust, clock: world.clock });
    await verifier.verify('agent', await tokenOf(world, 'agent'), ISSUED.agent);
    trust.close();
  });
});
