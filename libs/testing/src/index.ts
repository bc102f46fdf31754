export type {
  KeyPeer,
  KeyPeerOptions,
  PeerAgent,
  PeerHolder,
  PeerTokenOptions,
} from './peers/key-peer.ts';
export { startKeyPeer } from './peers/key-peer.ts';
export { addressOf, trustOf } from './peers/trust-peers.ts';
