import { createWriteStream } from 'node:fs';
import { rename, rm } from 'node:fs/promises';
import { pipeline } from 'node:stream/promises';
import { exportedLine } from '@writ/audit/portable';
import type { ExportAuditResponse } from '@writ/contracts/writ/audit/v1/audit_service_pb';
import { openClient } from '../../client.ts';
import type { ClientOptions } from '../../client-options.ts';
import { type CliIo, EXIT, type Exit } from '../../io.ts';
import { recordNumber } from './record-number.ts';

/** Options of `writ audit export`. */
export interface ExportOptions extends ClientOptions {
  readonly after: string;
}

/**
 * Writes the audit chain of the caller's tenant as JSON lines, to a file or to standard output; the file is created
 * only after a complete export (SV-8).
 * @throws InvalidRequestError INVALID_OPTION, and what openClient throws; DataLossError RECORD_UNREADABLE; errors of
 *   the platform and of writing the file
 */
export async function exportChain(
  file: string | undefined,
  options: ExportOptions,
  io: CliIo,
): Promise<Exit> {
  const afterSequence = BigInt(recordNumber(options.after, '--after'));
  const entries = openClient(options, io).audit.exportAudit({ afterSequence });
  if (file === undefined) {
    for await (const entry of entries) io.print(exportedLine(entry));
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
      yield `${exportedLine(entry)}\n`;
    }
  }
  await pipeline(texts, createWriteStream(file));
  return lines;
}
