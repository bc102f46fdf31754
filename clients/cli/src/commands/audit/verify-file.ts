import { isUtf8 } from 'node:buffer';
import { createReadStream } from 'node:fs';
import { readFile } from 'node:fs/promises';
import {
  parseLine,
  type ReadHead,
  type SignedHead,
  type ValidExport,
  verifyExport,
} from '@writ/audit';
import { summaryOf } from '@writ/audit/portable';
import { createVerifier, readCheckpoint, trustPublicKeys } from '@writ/identity';
import { signedHeadOf } from '@writ/identity/portable';
import { InvalidRequestError, omitUndefined, systemClock } from '@writ/kernel';
import { type CliIo, EXIT, type Exit } from '../../io.ts';
import type { FormatOptions } from '../../output/format.ts';
import { showData } from '../../output/show.ts';
import { recordNumber } from './record-number.ts';

/** Largest line, in bytes; the supervisor writes much shorter lines. */
const MAX_LINE = 8 * 1024 * 1024;
const LINE_FEED = 10;

/** A JSON web signature. */
const JWS = /^[\w-]+\.[\w-]+\.[\w-]+\s*$/;

/** Options of `writ audit verify`. */
export interface VerifyOptions extends FormatOptions {
  readonly keys?: string;
  readonly key?: string;
  readonly tenant?: string;
  readonly after: string;
  readonly continues?: string;
  readonly checkpoint?: string;
}

/**
 * Verifies an export offline with the public keys, and prints a summary or the first error (SV-8).
 * @throws InvalidRequestError KEYS_MISSING, INVALID_PUBLIC_KEYS, INVALID_OPTION, EXPORT_HEAD_MISSING,
 *   CHECKPOINT_FILE_INVALID, EXPORTS_NOT_COMPARABLE, LINE_TOO_LONG; UnauthenticatedError for an invalid head of the
 *   earlier export or checkpoint; errors from reading the files
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
  const published =
    options.checkpoint === undefined
      ? undefined
      : await publishedCheckpoints(options.checkpoint, readHead);
  if (typeof published === 'string') {
    showData(io, options, { holds: false, sentence: published }, () => [published]);
    return EXIT.failure;
  }
  const verdict = await verifyExport(readLines(file), readHead, {
    ...omitUndefined({ tenant }),
    ...(earlier && { earlier }),
    ...(published && { published }),
    after,
  });
  if (verdict.holds && options.checkpoint !== undefined)
    refuseUncompared(options.checkpoint, verdict, published, after);
  showData(io, options, verdict, () => [
    verdict.holds ? summaryOf(verdict, after) : verdict.sentence,
  ]);
  return verdict.holds ? EXIT.success : EXIT.failure;
}

/**
 * Reads published checkpoints and returns the last one of each tenant, or a sentence about the first rollback that the
 * file shows. The file contains one checkpoint per line, either as in WRIT_AUDIT_CHECKPOINT_FILE or as the JWS of an
 * AUDIT_CHECKPOINT event.
 * @throws InvalidRequestError CHECKPOINT_FILE_INVALID, LINE_TOO_LONG; UnauthenticatedError for an invalid signature
 */
async function publishedCheckpoints(
  file: string,
  readHead: ReadHead,
): Promise<ReadonlyMap<string, SignedHead> | string> {
  const published = new Map<string, SignedHead>();
  const lastSigned = new Map<string, string>();
  let number = 0;
  for await (const text of readLines(file)) {
    number += 1;
    const line = JWS.test(text) ? { type: 'checkpoint', signed: text.trim() } : parseLine(text);
    if (typeof line === 'string' || !('signed' in line)) {
      throw new InvalidRequestError(
        'CHECKPOINT_FILE_INVALID',
        `Line ${number} of ${file} is not a checkpoint.`,
        { file, line: String(number) },
      );
    }
    const head = await readHead(line.signed);
    if (head.closesExport) {
      throw new InvalidRequestError(
        'CHECKPOINT_FILE_INVALID',
        `Line ${number} of ${file} is the head of an export, not a checkpoint.`,
        { file, line: String(number) },
      );
    }
    const last = published.get(head.tenant);
    // Skips a line that repeats the previous checkpoint of the tenant.
    if (lastSigned.get(head.tenant) === line.signed) continue;
    if (
      last !== undefined &&
      (head.checkpointNumber <= last.checkpointNumber || head.count <= last.count)
    ) {
      return `Line ${number} of ${file}: checkpoint ${head.checkpointNumber} over ${head.count} records follows checkpoint ${last.checkpointNumber} over ${last.count} records: the chain of tenant ${head.tenant} was rolled back.`;
    }
    published.set(head.tenant, head);
    lastSigned.set(head.tenant, line.signed);
  }
  return published;
}

/** @throws InvalidRequestError EXPORTS_NOT_COMPARABLE when the file has no checkpoint to compare the export with */
function refuseUncompared(
  file: string,
  { tenant }: ValidExport,
  published: ReadonlyMap<string, SignedHead> | undefined,
  after: number,
): void {
  const checkpoint = published?.get(tenant);
  if (checkpoint !== undefined && checkpoint.count >= after) return;
  const what =
    checkpoint === undefined
      ? `has no checkpoint of tenant ${tenant}`
      : `ends with a checkpoint over ${checkpoint.count} records, but the export starts after record ${after}`;
  throw new InvalidRequestError(
    'EXPORTS_NOT_COMPARABLE',
    `${file} ${what}; the export is valid, but was not compared with a checkpoint.`,
  );
}

async function headReader(jwks: string): Promise<ReadHead> {
  const trust = await trustPublicKeys('supervisor', jwks);
  const verifier = createVerifier({ trust, clock: systemClock });
  return async (signed) => {
    const { claims, issueTime } = await readCheckpoint(verifier, signed);
    return signedHeadOf(claims, issueTime);
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

/**
 * The lines of a file, separated by line feeds. A line that is not UTF-8 is returned as an empty line.
 * @throws InvalidRequestError LINE_TOO_LONG; what reading the file throws
 */
async function* readLines(file: string): AsyncIterable<string> {
  let rest = Buffer.alloc(0);
  for await (const chunk of createReadStream(file) as AsyncIterable<Buffer>) {
    rest = Buffer.concat([rest, chunk]);
    let start = 0;
    for (let end = rest.indexOf(LINE_FEED); end >= 0; end = rest.indexOf(LINE_FEED, start)) {
      yield textOf(rest.subarray(start, end));
      start = end + 1;
    }
    rest = rest.subarray(start);
    if (rest.length > MAX_LINE) {
      throw new InvalidRequestError(
        'LINE_TOO_LONG',
        `${file} has a line of more than ${MAX_LINE} bytes.`,
      );
    }
  }
  if (rest.length > 0) yield textOf(rest);
}

function textOf(line: Buffer): string {
  return isUtf8(line) ? line.toString() : '';
}
