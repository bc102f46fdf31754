import { sha256Hex } from '@writ/kernel';

/** What stands for the hash of a record before the first. */
export const CHAIN_START = '0'.repeat(64);

/**
 * The hash of a record in its chain: SHA-256 over the 64 hex digits of the record before and the
 * UTF-8 of this one's canonical JSON, as 64 hex digits. It thereby covers every record before (SV-8).
 */
export function linkHash(previousHash: string, canonicalJson: string): string {
  return sha256Hex(previousHash + canonicalJson);
}
