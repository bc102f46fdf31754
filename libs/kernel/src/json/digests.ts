import { hash } from 'node:crypto';
import { canonicalJson } from './canonical-json.ts';

/** Returns the SHA-256 of bytes, or of the UTF-8 of a text, as 64 lower-case hex digits. */
export function sha256Hex(data: Uint8Array | string): string {
  return hash('sha256', data, 'hex');
}

/** Returns the SHA-256 of the canonical JSON of a value, as 64 hex digits. */
export function canonicalDigest(value: unknown): string {
  return sha256Hex(canonicalJson(value));
}

/** Returns the digest of a tool definition. A writ contains it, so that a changed tool is detected (TG-1, TG-2). */
export function definitionDigest(definition: object): string {
  return canonicalDigest(definition);
}
