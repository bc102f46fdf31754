import { createWriteStream } from 'node:fs';
import { rename, rm } from 'node:fs/promises';
import { pipeline } from 'node:stream/promises';
import { formatLine } from '@writ/audit';
import type { ExportAuditResponse } from '@writ/contracts/writ/audit/v1/audit_service_pb';
import { DataLossError, isJsonObject, type JsonValue } from '@writ/kernel';
import { type ClientOptions, openClient } from '../../client.ts';
import { type CliIo, EXIT, type Exit } from '../../io.ts';
import { recordNumber } from './record-number.ts';

/** Options of `writ audit export`. */
export interface ExportOptions extends ClientOptions {
  readonly after: string;
}

/**
 * Writes the audit chain of the caller's tenant as JSON lines, to a file or to standard output; the file is created
 * only after a complete export (SV-8).
 * @throws the errors of the platform; DataLossError RECORD_UNREADABLE
 */
export async function exportChain(
  file: string | undefined,
  options: ExportOptions,
  io: CliIo,
): Promise<Exit> {
  const afterSequence = BigInt(recordNumber(options.after, '--after'));
  const entries = openClient(options, io).audit.exportAudit({ afterSequence });
  if (file === undefined) {
    for await (const entry of entries) io.print(lineOf(entry));
    return EXIT.success;
  }
  const draft = `${file}.part`;
  try {
    const lines = await writeLines(draft, entries);
    await rename(draft, file);
    io.print(`Wrote ${lines} lines to ${file}.`);
  } catch (error) {
    await rm(draft, { force: true });
    throw error;
  }
  return EXIT.success;
}

/** Writes one line for each entry. @returns the number of lines */
async function writeLines(
  file: string,
  entries: AsyncIterable<ExportAuditResponse>,
): Promise<number> {
  let lines = 0;
  async function* texts(): AsyncIterable<string> {
    for await (const entry of entries) {
      lines += 1;
      yield `${lineOf(entry)}\n`;
    }
  }
  await pipeline(texts, createWriteStream(file));
  return lines;
}

function lineOf({ entry }: ExportAuditResponse): string {
  if (entry.case === undefined) throw unreadable('An entry of the export is empty.');
  if (entry.case !== 'record') return formatLine({ type: entry.case, signed: entry.value.signed });
  const { sequence, previousHash, hash, canonicalJson } = entry.value;
  const record = parse(canonicalJson);
  if (!isJsonObject(record)) throw unreadable(`Record ${sequence} is not a JSON object.`);
  return formatLine({ type: 'record', sequence: Number(sequence), previousHash, hash, record });
}

function parse(json: string): JsonValue | undefined {
  try {
    return JSON.parse(json) as JsonValue;
  } catch {
    // The caller reports the position.
    return undefined;
  }
}

function unreadable(sentence: string): DataLossError {
  return new DataLossError('RECORD_UNREADABLE', sentence);
}
