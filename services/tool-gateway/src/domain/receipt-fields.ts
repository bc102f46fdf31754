import { isJsonObject, type JsonObject, type JsonValue } from '@writ/kernel';
import { cutUtf8 } from './cap-output.ts';

/** Largest text of a result field in a receipt, in bytes. */
const MAX_FIELD_BYTES = 256;
/** Largest size of all result fields of a receipt, in bytes of JSON; a receipt has at most 16 KiB. */
const MAX_FIELDS_BYTES = 6_144;
/** Maximum number of result fields that a writ may request, and maximum total size of their paths in bytes. */
const MAX_PATHS = 64;
const MAX_PATH_BYTES = 3_072;

/** Whether a receipt can hold the fields at these paths; checked before execution. */
export function fieldsFit(paths: readonly string[]): boolean {
  const bytes = paths.reduce((sum, path) => sum + Buffer.byteLength(JSON.stringify(path)), 0);
  return paths.length <= MAX_PATHS && bytes <= MAX_PATH_BYTES;
}

/**
 * Returns the values that exist at dotted paths, by path (SV-3). A text is cut to the size limit of one field. Objects
 * and arrays, and texts that no longer fit in the total size limit, are replaced with an empty value of the same type,
 * so that an existing field is never missing.
 */
export function pickFields(value: JsonObject, paths: readonly string[]): Record<string, JsonValue> {
  const picked: [string, JsonValue][] = [];
  let left = MAX_FIELDS_BYTES;
  for (const path of paths) {
    const found = at(value, path.split('.'));
    if (found === undefined) continue;
    const shown = shorten(found);
    const size = Buffer.byteLength(JSON.stringify(shown));
    picked.push([path, size <= left ? shown : emptied(shown)]);
    left -= Math.min(size, left);
  }
  return Object.fromEntries(picked);
}

function at(value: JsonValue, [name, ...rest]: readonly string[]): JsonValue | undefined {
  if (name === undefined) return value;
  if (!isJsonObject(value) || !Object.hasOwn(value, name)) return undefined;
  const member = value[name];
  return member === undefined ? undefined : at(member, rest);
}

function shorten(value: JsonValue): JsonValue {
  if (typeof value === 'string') return cutUtf8(Buffer.from(value), MAX_FIELD_BYTES);
  return typeof value === 'object' && value !== null ? emptied(value) : value;
}

function emptied(value: JsonValue): JsonValue {
  if (typeof value === 'string') return '';
  if (typeof value !== 'object' || value === null) return value;
  return Array.isArray(value) ? [] : {};
}
