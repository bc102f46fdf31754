import { exportedLine, summaryOf, verifyLines } from '@writ/audit/portable';
import { createHeadReader } from '@writ/identity/portable';
import type { Api } from '../../api/api.ts';

/** The result of a verification, in one sentence. */
export interface ChainVerdict {
  readonly holds: boolean;
  readonly sentence: string;
}

/** Whether this page may verify signatures: browsers permit it only on https and on localhost. */
export function canVerify(): boolean {
  return globalThis.isSecureContext && crypto.subtle !== undefined;
}

/** Reads the whole chain of the tenant as the lines of an export. */
export async function downloadChain(
  { audit }: Api,
  onProgress: (lines: number) => void,
  signal: AbortSignal,
): Promise<string[]> {
  const lines: string[] = [];
  for await (const entry of audit.exportAudit({}, { signal })) {
    lines.push(exportedLine(entry));
    if (lines.length % 200 === 0) onProgress(lines.length);
  }
  onProgress(lines.length);
  return lines;
}

/** The public keys that the platform publishes now, as a JSON Web Key Set. */
export async function publishedKeys({ keys }: Api): Promise<string> {
  const answer = await keys.getKeys({});
  const jwks = answer.keys.map(({ keyId, jwkJson, notAfter }) => {
    const { x } = JSON.parse(jwkJson) as { readonly x: string };
    const until =
      notAfter && new Date(Number(notAfter.seconds) * 1_000 + notAfter.nanos / 1e6).toISOString();
    return { kty: 'OKP', crv: 'Ed25519', x, kid: keyId, ...(until && { not_after: until }) };
  });
  return JSON.stringify({ keys: jwks });
}

/**
 * Parses the number of the record that precedes a partial export; zero for an empty text, undefined for a text that is
 * not the number of a record.
 */
export function recordNumber(text: string): number | undefined {
  const digits = text.trim();
  const number = Number(digits);
  return /^\d*$/.test(digits) && Number.isSafeInteger(number) ? number : undefined;
}

/**
 * Verifies an export with the code of `writ audit verify`; the browser computes hashes and verifies signatures. `after`
 * is the number of the record that precedes a partial export. It is not read from the export, because missing records
 * at the start would then not be detected.
 */
export async function verifyChain(
  lines: readonly string[],
  jwks: string,
  after = 0,
): Promise<ChainVerdict> {
  const readHead = await createHeadReader(jwks, isSigned);
  const verdict = await verifyLines(lines, { readHead, sha256 }, { after });
  return verdict.holds
    ? { holds: true, sentence: summaryOf(verdict, after) }
    : { holds: false, sentence: verdict.sentence };
}

const UTF8 = new TextEncoder();

async function sha256(text: string): Promise<string> {
  const digest = await crypto.subtle.digest('SHA-256', UTF8.encode(text));
  return Array.from(new Uint8Array(digest), (byte) => byte.toString(16).padStart(2, '0')).join('');
}

async function isSigned(token: string, x: string): Promise<boolean> {
  const jwk = { kty: 'OKP', crv: 'Ed25519', x };
  const key = await crypto.subtle.importKey('jwk', jwk, 'Ed25519', false, ['verify']);
  const end = token.lastIndexOf('.');
  const signature = bytesOf(token.slice(end + 1));
  return await crypto.subtle.verify('Ed25519', key, signature, UTF8.encode(token.slice(0, end)));
}

function bytesOf(base64url: string): Uint8Array<ArrayBuffer> {
  const text = atob(base64url.replaceAll('-', '+').replaceAll('_', '/'));
  return Uint8Array.from(text, (character) => character.charCodeAt(0));
}
