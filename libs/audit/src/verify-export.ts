import { sha256Hex } from '@writ/kernel';
import type { Expected, InvalidExport, ReadHead, ValidExport } from './verification.ts';
import { verifyLines } from './verify-lines.ts';

/** Verifies an export with {@link verifyLines} and the SHA-256 implementation of Node (SV-8). */
export async function verifyExport(
  lines: AsyncIterable<string> | Iterable<string>,
  readHead: ReadHead,
  expected: Expected = {},
): Promise<ValidExport | InvalidExport> {
  return await verifyLines(lines, { readHead, sha256: sha256Hex }, expected);
}
