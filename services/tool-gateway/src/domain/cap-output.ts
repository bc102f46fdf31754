import { isJsonObject, type JsonObject, type JsonValue, sha256Hex } from '@writ/kernel';

/**
 * Media type of a JSON object whose `content`, or `_content` beside the fields of the tool, has the content blocks of an
 * MCP server that are more than text: images, audio and resources.
 */
export const MCP_CONTENT = 'application/vnd.writ.mcp-content+json';

/** The full output of a tool. */
export type ToolOutput =
  | {
      readonly kind: 'json';
      readonly content: string;
      readonly value: JsonObject;
      /** Empty for plain JSON; {@link MCP_CONTENT}. */
      readonly mediaType?: string;
    }
  | { readonly kind: 'text'; readonly content: string }
  /** The content is a URL. */
  | { readonly kind: 'image'; readonly content: string; readonly mediaType: string };

/** The recorded and returned part of an output. */
export interface ToolResult {
  readonly kind: 'json' | 'text' | 'image';
  readonly content: string;
  /** Media type of an image, or {@link MCP_CONTENT}; empty otherwise. */
  readonly mediaType: string;
  readonly truncated: boolean;
  readonly fullSizeBytes: number;
  /** SHA-256 of the full content, in hex. */
  readonly fullSha256: string;
}

/** Largest text of a result field in a receipt, in bytes. */
const MAX_FIELD_BYTES = 256;
/** Largest size of all result fields of a receipt, in bytes of JSON; a receipt has at most 16 KiB. */
const MAX_FIELDS_BYTES = 6_144;
/** Largest number of result fields that a writ may request, and of bytes of their paths. */
const MAX_PATHS = 64;
const MAX_PATH_BYTES = 3_072;

/**
 * Limits an output to `maxBytes` of UTF-8. A longer output is cut between characters, marked as truncated and
 * returned as text, because a part of a JSON object or URL is invalid (TG-6).
 */
export function capOutput(output: ToolOutput, maxBytes: number): ToolResult {
  const bytes = Buffer.from(output.content);
  const full = { fullSizeBytes: bytes.byteLength, fullSha256: sha256Hex(bytes) };
  const { mediaType = '' } = output.kind === 'text' ? { mediaType: '' } : output;
  if (bytes.byteLength <= maxBytes) {
    return { kind: output.kind, content: output.content, mediaType, truncated: false, ...full };
  }
  const content = cut(bytes, maxBytes);
  const isJson = output.kind === 'json';
  return { kind: 'text', content, mediaType: isJson ? mediaType : '', truncated: true, ...full };
}

/** Whether a receipt can hold the fields at these paths; checked before execution. */
export function fieldsFit(paths: readonly string[]): boolean {
  const bytes = paths.reduce((sum, path) => sum + Buffer.byteLength(JSON.stringify(path)), 0);
  return paths.length <= MAX_PATHS && bytes <= MAX_PATH_BYTES;
}

/**
 * The existing values at dotted paths, by path (SV-3). A long text is cut. Objects, arrays, and texts beyond the
 * size limit are replaced by an empty value of the same type, so that an existing field is never missing.
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
  if (typeof value === 'string') return cut(Buffer.from(value), MAX_FIELD_BYTES);
  return typeof value === 'object' && value !== null ? emptied(value) : value;
}

function emptied(value: JsonValue): JsonValue {
  if (typeof value === 'string') return '';
  if (typeof value !== 'object' || value === null) return value;
  return Array.isArray(value) ? [] : {};
}

/** The first `maxBytes` at most, cut between characters. */
function cut(bytes: Buffer, maxBytes: number): string {
  if (bytes.byteLength <= maxBytes) return bytes.toString();
  let end = maxBytes;
  // A byte 10xxxxxx continues the character before it.
  while (end > 0 && ((bytes[end] ?? 0) & 0xc0) === 0x80) end -= 1;
  return bytes.subarray(0, end).toString();
}
