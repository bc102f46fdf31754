import {
  InvalidRequestError,
  isJsonObject,
  type JsonObject,
  type JsonValue,
  textOf,
} from '@writ/kernel';
import type { ChatMessage, ChatPart, ChatRole } from '../chat/chat.ts';

/** A position in an answer. */
export function indexOf(value: unknown): number | undefined {
  return Number.isSafeInteger(value) ? Number(value) : undefined;
}

/** Upper bound of plausible token counts. */
const MAX_TOKEN_COUNT = 1_000_000_000;

/** Returns a plausible count of tokens (EM-8). */
export function countOf(value: unknown): bigint | undefined {
  const valid = typeof value === 'number' && Number.isSafeInteger(value);
  return valid && value >= 0 && value <= MAX_TOKEN_COUNT ? BigInt(value) : undefined;
}

export function atMost(value: bigint, limit: bigint): bigint {
  return value > limit ? limit : value;
}

export function isSet(value: JsonValue | undefined): boolean {
  return value !== undefined && value !== null;
}

/** The error of a field that could cost more than is reserved. */
export function notAllowed(field: string, rule: string): InvalidRequestError {
  return new InvalidRequestError('NATIVE_FIELD_NOT_ALLOWED', `${field} ${rule}.`, { field });
}

/** The error of a tool that the provider executes. */
export function hostedTool(field: string): InvalidRequestError {
  return new InvalidRequestError(
    'HOSTED_TOOL_NOT_ALLOWED',
    `${field} is executed by the provider, without a review; use a tool that the program executes.`,
    { field },
  );
}

/** Reads the first limit of the output that is set. */
export function outputLimitOf(body: JsonObject, ...fields: readonly string[]): bigint | undefined {
  for (const field of fields) {
    const limit = body[field];
    if (limit === undefined || limit === null) continue;
    const isCount = typeof limit === 'number' && Number.isSafeInteger(limit) && limit >= 1;
    if (isCount) return BigInt(limit);
    throw notAllowed(field, 'must be a whole number of at least 1');
  }
  return undefined;
}

/** @throws InvalidRequestError NATIVE_FIELD_NOT_ALLOWED unless the field is unset or one of the values */
export function assertOneOf(body: JsonObject, field: string, values: readonly unknown[]): void {
  const value = body[field];
  if (value === undefined || value === null || values.includes(value)) return;
  throw notAllowed(field, `must be ${values.join(' or ')}`);
}

/**
 * What a message measures: its text as JSON, which is never shorter, its images and documents. Documents that the
 * provider fetches, and all files that it has stored, are refused, because their size is unknown. Images by URL are
 * accepted: each is counted with a fixed number of tokens.
 * @throws InvalidRequestError NATIVE_FIELD_NOT_ALLOWED
 */
export function measured(role: ChatRole, message: JsonValue, field: string): ChatMessage {
  const media: ChatPart[] = [];
  const text = JSON.stringify(message, (name, value: unknown) => {
    if (UNBOUNDED.includes(name) && typeof value === 'string') {
      throw notAllowed(
        `${field}: ${name}`,
        'names content whose size is unknown; send the content',
      );
    }
    if (!isJsonObject(value as JsonValue)) return value;
    const { type, input, ...rest } = value as JsonObject;
    // Arguments of a tool call have fields of any name.
    if (type === 'tool_use') return { ...rest, type, input: JSON.stringify(input) };
    if (isDocument(value as JsonObject)) media.push({ type: 'document' });
    const image = imageOf(value as JsonObject);
    if (image === undefined) return value;
    media.push({ type: 'image', url: image.url });
    return image.rest;
  });
  return { role, parts: [{ type: 'text', text }, ...media] };
}

const UNBOUNDED: readonly string[] = ['file_id', 'file_url'];

/** Whether a part of a message in any dialect contains a file that is neither text nor an image, such as a PDF. */
function isDocument({ type, source }: JsonObject): boolean {
  if (type === 'document') return isJsonObject(source) && source.type === 'base64';
  return type === 'file' || type === 'input_file';
}

/** An image in a part of a message. */
interface MessageImage {
  readonly url: string;
  /** The part without it. */
  readonly rest: JsonObject;
}

/** The image of a part of a message in any dialect. */
function imageOf(part: JsonObject): MessageImage | undefined {
  const { type, image_url: url, source } = part;
  if (type === 'image_url' && isJsonObject(url)) {
    return { url: textOf(url.url), rest: { ...part, image_url: withoutTexts(url, 'url') } };
  }
  if (type === 'input_image') return { url: textOf(url), rest: withoutTexts(part, 'image_url') };
  if (type === 'image' && isJsonObject(source)) {
    const rest = { ...part, source: withoutTexts(source, 'url', 'data') };
    return { url: textOf(source.url), rest };
  }
  const isRemote = type === 'document' && isJsonObject(source) && source.type === 'url';
  if (isRemote) {
    throw notAllowed('document.source', 'names content whose size is unknown; send the content');
  }
  return undefined;
}

/** An object without those of its fields that are texts. */
function withoutTexts(object: JsonObject, ...names: readonly string[]): JsonObject {
  const isKept = ([name, value]: [string, unknown]) =>
    !names.includes(name) || typeof value !== 'string';
  return Object.fromEntries(Object.entries(object).filter(isKept));
}
