import { readFile } from 'node:fs/promises';
import {
  parseLine,
  type ReadHead,
  type SignedHead,
  type SoundExport,
  verifyExport,
} from '@writ/audit';
import { createVerifier, readCheckpoint, trustPublicKeys } from '@writ/identity';
import { InvalidRequestError, systemClock } from '@writ/kernel';
import { type CliIo, EXIT, type Exit } from '../../io.ts';
import { readLines } from './read-lines.ts';
import { recordNumber } from './record-number.ts';

/** Options of `writ audit verify`. */
export interface VerifyOptions {
  readonly keys?: string;
  readonly key?: string;
  readonly tenant?: string;
  readonly after: string;
  readonly continues?: string;
}

/**
 * Verifies an export offline with the public keys, and prints a summary or the first error (SV-8).
 * @throws InvalidRequestError KEYS_MISSING, INVALID_PUBLIC_KEYS, INVALID_OPTION, EXPORT_HEAD_MISSING; UnauthenticatedError for
 *   an invalid head of the earlier export; errors of reading the files
 */
export async function verifyFile(file: string, options: VerifyOptions, io: CliIo): Promise<Exit> {
  const { keys = options.key, tenant } = options;
  if (keys === undefined) {
    throw new InvalidRequestError(
      'KEYS_MISSING',
      "--keys is required: the file with the supervisor's public keys. `writ audit keys` prints them.",
    );
  }
  const after = recordNumber(options.after, '--after');
  const readHead = await headReader(await readFile(keys, 'utf8'));
  const earlier =
    options.continues === undefined ? undefined : await headOf(options.continues, readHead);
  const verdict = await verifyExport(readLines(file), readHead, {
    ...(tenant !== undefined && { tenant }),
    ...(earlier && { earlier }),
    after,
  });
  io.print(verdict.holds ? summaryOf(verdict, after) : verdict.sentence);
  return verdict.holds ? EXIT.success : EXIT.failure;
}

async function headReader(jwks: string): Promise<ReadHead> {
  const trust = await trustPublicKeys('supervisor', jwks);
  const verifier = createVerifier({ trust, clock: systemClock });
  return async (signed) => {
    const { claims, issueTime: signedAt } = await readCheckpoint(verifier, signed);
    const { tenant, headHash, closesExport } = claims;
    const [count, previousCount] = [Number(claims.count), Number(claims.previousCount)];
    return { tenant, count, headHash, previousCount, closesExport, signedAt };
  };
}

/** The head of an earlier export. */
async function headOf(file: string, readHead: ReadHead): Promise<SignedHead> {
  let last = '';
  for await (const line of readLines(file)) last = line;
  const head = parseLine(last);
  if (typeof head !== 'string' && head.type === 'head') return await readHead(head.signed);
  throw new InvalidRequestError(
    'EXPORT_HEAD_MISSING',
    `${file} does not end with the head of an export.`,
  );
}

function summaryOf({ tenant, records, checkpoints, head }: SoundExport, after: number): string {
  const which = records === 0 ? 'no records' : `${records} records, ${after + 1} to ${head.count}`;
  const when = head.signedAt.toISOString();
  return `The chain of tenant ${tenant} holds: ${which}, ${checkpoints} checkpoints, head signed at ${when}.`;
}
