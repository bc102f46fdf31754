import { canonicalJson, isJsonObject, type JsonObject, type JsonValue } from '@writ/kernel';

/** A record with its place in the chain. */
export interface RecordLine {
  readonly type: 'record';
  readonly sequence: number;
  readonly previousHash: string;
  readonly hash: string;
  /** What the hash covers, in its canonical form. */
  readonly record: JsonObject;
}

/** A signature over everything before it: a checkpoint on the way, or the head that ends an export. */
export interface SignedLine {
  readonly type: 'checkpoint' | 'head';
  /** A JWS by the supervisor, which holds all that there is to say. */
  readonly signed: string;
}

/** One line of an export. */
export type ExportLine = RecordLine | SignedLine;

const HASH = /^[0-9a-f]{64}$/;
const RECORD_MEMBERS = 'hash,previous_hash,record,sequence,type';
const SIGNED_MEMBERS = 'signed,type';

/** A line as canonical JSON without a line end: it has one spelling, so that an edited one shows (SV-8). */
export function formatLine(line: ExportLine): string {
  if (line.type !== 'record') return canonicalJson({ type: line.type, signed: line.signed });
  const { type, sequence, previousHash, hash, record } = line;
  return canonicalJson({ type, sequence, previous_hash: previousHash, hash, record });
}

/** Reads a line; a text in place of it says, as the end of a sentence, why it is none. */
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
    // Half a surrogate pair, or nested too deeply: nothing that was ever written has it.
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
