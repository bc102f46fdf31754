import { sha256Hex } from '@writ/kernel';
import { linkText } from './chain-link.ts';

/**
 * Returns the hash of a record in its chain: SHA-256 over the 64 hex digits of the previous hash and the UTF-8
 * of the record's canonical JSON, as 64 hex digits. It covers all previous records (SV-8).
 */
export function linkHash(previousHash: string, canonicalJson: string): string {
  return sha256Hex(linkText(previousHash, canonicalJson));
}
