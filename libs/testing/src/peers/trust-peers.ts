import { createTrust, type ServiceName, type Signer, type Trust } from '@writ/identity';
import { createTelemetry } from '@writ/telemetry';
import type { KeyPeer } from './key-peer.ts';

/** Where nothing listens: port 1 of the loopback is nobody's in tests. */
const NOBODY = '127.0.0.1:1';

/**
 * Where the services are, for a service under test: the peers' addresses; for every other service an
 * address at which nobody answers, so that needing it fails with UNAVAILABLE and does not hang.
 */
export function addressOf(...peers: readonly KeyPeer[]): (service: ServiceName) => string {
  const addresses = new Map(peers.map((peer) => [peer.service, peer.address]));
  return (service) => addresses.get(service) ?? NOBODY;
}

/** Trust in `peers`, whose keys are fetched over the wire, and in `self` without asking. Close it. */
export function trustOf(peers: readonly KeyPeer[], self?: Signer): Trust {
  return createTrust({
    addresses: Object.fromEntries(peers.map(({ service, address }) => [service, address])),
    telemetry: createTelemetry({ service: self?.service ?? 'test', logLevel: 'silent' }),
    ...(self === undefined ? {} : { self, clock: self.clock }),
  });
}
