import { DataLossError, isJsonObject, type JsonValue } from '@writ/kernel/portable';
import { formatLine } from './export-line.ts';

/** An entry of ExportAudit. */
export interface ExportedEntry {
  readonly entry:
    | {
        readonly case: 'record';
        readonly value: {
          readonly sequence: bigint;
          readonly previousHash: string;
          readonly hash: string;
          readonly canonicalJson: string;
        };
      }
    | {
        readonly case: 'checkpoint' | 'head';
        readonly value: { readonly signed: string };
      }
    | { readonly case: undefined; readonly value?: undefined };
}

/**
 * Returns the line of an entry in an export, without a line break (SV-8).
 * @throws DataLossError RECORD_UNREADABLE
 */
export function exportedLine({ entry }: ExportedEntry): string {
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
    // The caller throws an error with the sequence number of the record.
    return undefined;
  }
}

function unreadable(sentence: string): DataLossError {
  return new DataLossError('RECORD_UNREADABLE', sentence);
}
