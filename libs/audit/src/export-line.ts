import {
  canonicalJson,
  isJsonObject,
  type JsonObject,
  type JsonValue,
} from '@writ/kernel/portable';

/** A record with its position in the chain. */
export interface RecordLine {
  readonly type: 'record';
  readonly sequence: number;
  readonly previousHash: string;
  readonly hash: string;
  /** The content, whose canonical JSON the hash covers. */
  readonly record: JsonObject;
}

/** A signature over all previous records: a checkpoint, or the head that ends an export. */
export interface SignedLine {
  readonly type: 'checkpoint' | 'head';
  /** A JWS by the supervisor with the {@link SignedHead}. */
  readonly signed: string;
}

/** One line of an export. */
export type ExportLine = RecordLine | SignedLine;

const HASH = /^[0-9a-f]{64}$/;
const RECORD_MEMBERS = 'hash,previous_hash,record,sequence,type';
const SIGNED_MEMBERS = 'signed,type';

/** Formats a line as canonical JSON without a line break, so that every edit is detectable (SV-8). */
export function formatLine(line: ExportLine): string {
  if (line.type !== 'record') return canonicalJson({ type: line.type, signed: line.signed });
  const { type, sequence, previousHash, hash, record } = line;
  return canonicalJson({ type, sequence, previous_hash: previousHash, hash, record });
}

/**
 * Parses a line. For an invalid line, returns the problem as a text that follows "the line", such as "is not canonical
 * JSON".
 */
export function parseLine(text: string): ExportLine | string {
  let value: JsonValue;
  try {
    value = JSON.parse(text);
  } catch {
    return 'is not JSON';
  }
  if (!isJsonObject(value) || !isCanonical(value, text)) return 'is not canonical JSON';
  return lineOf(value) ?? 'is neither a record nor a checkpoint nor a head';
}

function isCanonical(value: JsonObject, text: string): boolean {
  try {
    return canonicalJson(value) === text;
  } catch {
    // Values that the supervisor never writes: lone surrogates, or too deep nesting.
    return false;
  }
}

function lineOf(value: JsonObject): ExportLine | undefined {
  const members = Object.keys(value).sort().join();
  const { type, sequence, previous_hash: previousHash, hash, record, signed } = value;
  if (type === 'record' && members === RECORD_MEMBERS) {
    if (!isCount(sequence) || !isHash(previousHash) || !isHash(hash)) return undefined;
    return isJsonObject(record) ? { type, sequence, previousHash, hash, record } : undefined;
  }
  if ((type === 'checkpoint' || type === 'head') && members === SIGNED_MEMBERS) {
    return typeof signed === 'string' ? { type, signed } : undefined;
  }
  return undefined;
}

function isCount(value: JsonValue | undefined): value is number {
  return Number.isSafeInteger(value) && Number(value) > 0;
}

function isHash(value: JsonValue | undefined): value is string {
  return typeof value === 'string' && HASH.test(value);
}
