import { type JsonObject, sha256Hex } from '@writ/kernel';

/**
 * Media type of a JSON result that contains content blocks of an MCP server. If the server returned no structured
 * content, the field `content` contains all blocks. Otherwise the result has the fields of the structured content, and
 * the field `_content` contains the blocks that are not text, such as images, audio and resources.
 */
export const MCP_CONTENT = 'application/vnd.writ.mcp-content+json';

/** The full output of a tool. */
export type ToolOutput =
  | {
      readonly kind: 'json';
      readonly content: string;
      readonly value: JsonObject;
      /** {@link MCP_CONTENT}, or absent for plain JSON. */
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

/**
 * Limits an output to `maxBytes` of UTF-8. A longer output is cut between characters, marked as truncated and
 * returned as text, because a part of a JSON object or URL is invalid (TG-6). Replaces NUL characters; the size and the
 * digest are those of the content after the replacement.
 */
export function capOutput(output: ToolOutput, maxBytes: number): ToolResult {
  const content = replaceNul(output.content);
  const bytes = Buffer.from(content);
  const full = { fullSizeBytes: bytes.byteLength, fullSha256: sha256Hex(bytes) };
  const mediaType = output.kind === 'text' ? '' : replaceNul(output.mediaType ?? '');
  if (bytes.byteLength <= maxBytes) {
    return { kind: output.kind, content, mediaType, truncated: false, ...full };
  }
  const isJson = output.kind === 'json';
  return {
    kind: 'text',
    content: cutUtf8(bytes, maxBytes),
    mediaType: isJson ? mediaType : '',
    truncated: true,
    ...full,
  };
}

/**
 * Replaces NUL characters by U+FFFD. PostgreSQL cannot store a NUL character, and the outcome of an executed call must
 * be recorded (TG-5).
 */
export function replaceNul(text: string): string {
  return text.replaceAll('\u0000', '\ufffd');
}

/** Returns at most `maxBytes` of UTF-8 as text, cut between characters. */
export function cutUtf8(bytes: Buffer, maxBytes: number): string {
  if (bytes.byteLength <= maxBytes) return bytes.toString();
  let end = maxBytes;
  // A byte 10xxxxxx continues the character before it.
  while (end > 0 && ((bytes[end] ?? 0) & 0xc0) === 0x80) end -= 1;
  return bytes.subarray(0, end).toString();
}
