/** The previous hash of the first record. */
export const CHAIN_START = '0'.repeat(64);

/** Returns the text whose SHA-256 links a record to its chain: the previous hash, then the canonical JSON of the record. */
export function linkText(previousHash: string, canonicalJson: string): string {
  return previousHash + canonicalJson;
}
