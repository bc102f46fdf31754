import { foldWhiteSpace } from '../names/white-space.ts';
import { sha256Hex } from './digests.ts';
import { isJsonObject, type JsonObject, type JsonValue } from './json-value.ts';

/**
 * Returns the short hash of a call's arguments, for loop detection and the trace in the result of a run: 12 hex digits
 * of SHA-256 over {@link argsHashText} (TG-4). `{"user_id": 42}` → `feaa769a39ae`. Absent arguments are `{}`.
 */
export function argsHash(args: JsonObject | null | undefined): string {
  return sha256Hex(argsHashText(args ?? {})).slice(0, 12);
}

/**
 * Returns the ASCII text that {@link argsHash} hashes: keys sorted by code point; no white space between tokens;
 * numbers as in RFC 8785; white space in string values, but not in keys, trimmed and folded; characters that are not
 * ASCII escaped (TG-4).
 */
export function argsHashText(value: JsonValue): string {
  if (typeof value === 'string') return asciiString(foldWhiteSpace(value));
  if (Array.isArray(value)) return `[${value.map(argsHashText).join(',')}]`;
  if (isJsonObject(value)) {
    const members = Object.entries(value)
      .sort(([left], [right]) => compareCodePoints(left, right))
      .map(([key, member]) => `${asciiString(key)}:${argsHashText(member)}`);
    return `{${members.join(',')}}`;
  }
  return JSON.stringify(value);
}

/**
 * Returns a text as a JSON string of ASCII characters. JSON.stringify does not escape the characters above tilde; this
 * function escapes them as well.
 */
function asciiString(text: string): string {
  return JSON.stringify(text).replace(
    /[^ -~]/g,
    (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`,
  );
}

/**
 * Compares two texts by code points. The order of UTF-16 units differs: it sorts characters above U+FFFF before U+E000.
 */
function compareCodePoints(left: string, right: string): number {
  let at = 0;
  while (at < left.length && left.charCodeAt(at) === right.charCodeAt(at)) at += 1;
  // When only the low surrogates of two pairs differ, they sort like the pairs.
  return (left.codePointAt(at) ?? -1) - (right.codePointAt(at) ?? -1);
}
