import { InvalidRequestError } from '../errors/errors.ts';
import type { JsonValue } from './json-value.ts';
import { StrictJsonParser } from './strict-json-parser.ts';

/** Limits of {@link parseJsonStrict}, and the name of the value for error messages. */
export interface JsonLimits {
  /** Maximum nesting of arrays and objects. Default 32. */
  readonly maxDepth?: number;
  /** Maximum bytes of UTF-8. Default 262,144. */
  readonly maxBytes?: number;
  /** The name for error messages. Default `json`. */
  readonly field?: string;
}

/**
 * Parses JSON strictly, so that every reader interprets the bytes alike (TG-4, SYS-4).
 * @throws InvalidRequestError naming `field`, with reason INVALID_JSON (syntax), JSON_INVALID_UTF8,
 * JSON_TOO_LARGE, JSON_TOO_DEEP, JSON_DUPLICATE_KEY, JSON_FORBIDDEN_KEY (`__proto__`),
 * JSON_LONE_SURROGATE or JSON_INVALID_NUMBER (NaN, infinite, or an integer outside ±(2^53 - 1))
 */
export function parseJsonStrict(source: Uint8Array | string, limits: JsonLimits = {}): JsonValue {
  const { maxDepth = 32, maxBytes = 262_144, field = 'json' } = limits;
  const size = typeof source === 'string' ? Buffer.byteLength(source) : source.byteLength;
  if (size > maxBytes) {
    throw new InvalidRequestError('JSON_TOO_LARGE', `${field} is larger than ${maxBytes} bytes.`, {
      field,
      max_bytes: String(maxBytes),
    });
  }
  const text = typeof source === 'string' ? source : decodeUtf8(source, field);
  return new StrictJsonParser(text, maxDepth, field).parse();
}

function decodeUtf8(bytes: Uint8Array, field: string): string {
  try {
    return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes);
  } catch (cause) {
    const message = `${field} is not valid UTF-8.`;
    throw new InvalidRequestError('JSON_INVALID_UTF8', message, { field }, { cause });
  }
}
