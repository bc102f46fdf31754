import { createTrust, type ServiceName, type Signer, type Trust } from '@writ/identity';
import { createTelemetry } from '@writ/telemetry';
import type { KeyPeer } from './key-peer.ts';

/** No test listens on port 1 of the loopback interface. */
const UNREACHABLE = '127.0.0.1:1';

/**
 * Returns the address lookup for a service under test: the peers' addresses, and an unreachable address
 * for every other service, so that a call to it fails with UNAVAILABLE and does not hang.
 */
export function addressOf(...peers: readonly KeyPeer[]): (service: ServiceName) => string {
  const addresses = new Map(peers.map((peer) => [peer.service, peer.address]));
  return (service) => addresses.get(service) ?? UNREACHABLE;
}

/**
 * Creates a Trust that accepts the tokens of `peers` and of `self`, and fetches the keys of the peers over gRPC. The
 * caller must close the Trust.
 */
export function trustOf(peers: readonly KeyPeer[], self?: Signer): Trust {
  return createTrust({
    addresses: Object.fromEntries(peers.map(({ service, address }) => [service, address])),
    telemetry: createTelemetry({ service: self?.service ?? 'test', logLevel: 'silent' }),
    ...(self === undefined ? {} : { self, clock: self.clock }),
  });
}
