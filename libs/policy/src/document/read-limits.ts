import type { ObjectSchema } from '@marcbachmann/cel-js';
import { isMap, isScalar, isSeq } from 'yaml';
import { centsDown } from '../cel/cents.ts';
import type { DocumentReader, Spot } from './document-reader.ts';
import { NAME } from './names.ts';

/** The named constants of a document, as values and as types for CEL. */
export interface Limits {
  readonly values: Readonly<Record<string, unknown>>;
  readonly types: ObjectSchema;
}

/**
 * Reads `limits`: whole numbers become int, other numbers double, `{usd: 1000}` an int of cents
 * rounded down, and strings, booleans and lists of strings remain unchanged.
 */
export function readLimits(source: DocumentReader, spot: Spot | undefined): Limits {
  const values: Record<string, unknown> = {};
  const types: ObjectSchema = {};
  const members = spot && source.map(spot);
  for (const [name, member] of members ?? []) {
    if (!NAME.test(name)) {
      source.report(member, `${member.path} must have a name that matches ${NAME.source}.`);
      continue;
    }
    const limit = readLimit(source, member);
    if (limit === undefined) continue;
    [values[name], types[name]] = limit;
  }
  return { values: Object.freeze(values), types };
}

function readLimit(source: DocumentReader, spot: Spot): readonly [unknown, string] | undefined {
  if (isMap(spot.node)) return readMoney(source, spot);
  if (isSeq(spot.node)) {
    const items = source.list(spot)?.map((item) => source.text(item)) ?? [];
    return [items, 'list<string>'];
  }
  const value = source.literal(spot);
  if (value === undefined) return undefined;
  if (typeof value === 'string') return [value, 'string'];
  if (typeof value === 'boolean') return [value, 'bool'];
  // `5.0` is a double although its value is whole.
  const whole = isScalar(spot.node) && /^[-+]?\d+$/.test(spot.node.source ?? '');
  return whole && Number.isSafeInteger(value) ? [BigInt(value), 'int'] : [value, 'double'];
}

function readMoney(source: DocumentReader, spot: Spot): readonly [unknown, string] | undefined {
  const amount = source.map(spot, { keys: ['usd'], required: ['usd'] })?.get('usd');
  const usd = amount && source.number(amount);
  return usd === undefined ? undefined : [centsDown(usd), 'int'];
}
