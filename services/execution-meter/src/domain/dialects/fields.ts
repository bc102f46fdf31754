import {
  InvalidRequestError,
  isJsonObject,
  type JsonObject,
  type JsonValue,
  textOf,
} from '@writ/kernel';
import type { ChatMessage, ChatPart, ChatRole } from '../chat/chat.ts';

/** Returns a position in an answer; undefined when the value is not an integer. */
export function indexOf(value: unknown): number | undefined {
  return Number.isSafeInteger(value) ? Number(value) : undefined;
}

/** Upper bound of plausible token counts. */
const MAX_TOKEN_COUNT = 1_000_000_000;

/** Returns a token count; undefined when the value is not a plausible count (EM-8). */
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

/** Returns the error for a field that is invalid, or that could cause more cost than is reserved. */
export function notAllowed(field: string, rule: string): InvalidRequestError {
  return new InvalidRequestError('NATIVE_FIELD_NOT_ALLOWED', `${field} ${rule}.`, { field });
}

/** Returns the error for a tool that the provider executes. */
export function hostedTool(field: string): InvalidRequestError {
  return new InvalidRequestError(
    'HOSTED_TOOL_NOT_ALLOWED',
    `${field} is executed by the provider, without a review; use a tool that the program executes.`,
    { field },
  );
}

/**
 * Reads the output limit from the first of `fields` that is set.
 * @throws InvalidRequestError NATIVE_FIELD_NOT_ALLOWED
 */
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

/** Checks that a field is unset or has one of the values. @throws InvalidRequestError NATIVE_FIELD_NOT_ALLOWED */
export function assertOneOf(body: JsonObject, field: string, values: readonly unknown[]): void {
  const value = body[field];
  if (value === undefined || value === null || values.includes(value)) return;
  throw notAllowed(field, `must be ${values.join(' or ')}`);
}

/**
 * Returns the parts of a message that determine its token count: its images and documents, and the message without its
 * images as JSON text, which is at least as long as the text that the provider tokenizes. Rejects documents that the
 * provider would fetch, and files that the provider has stored, because their size is unknown, and audio and video,
 * because their tokens are not counted or cost more than those of text. Accepts images by URL; each image is counted
 * as a fixed number of tokens.
 * @throws InvalidRequestError NATIVE_FIELD_NOT_ALLOWED
 */
export function measured(role: ChatRole, message: JsonValue, field: string): ChatMessage {
  const media: ChatPart[] = [];
  const text = JSON.stringify(message, (name, value: unknown) => {
    if (UNBOUNDED.includes(name) && typeof value === 'string') {
      throw notAllowed(
        `${field}: ${name}`,
        'refers to content whose size is unknown; send the content',
      );
    }
    if (UNSUPPORTED.includes(name) && isSet(value as JsonValue)) throw unsupported(field, name);
    if (!isJsonObject(value as JsonValue)) return value;
    const { type, input, ...rest } = value as JsonObject;
    // The arguments of a tool call may have fields with these names, so they are not searched.
    if (TOOL_USES.includes(type)) return { ...rest, type, input: JSON.stringify(input) };
    if (UNSUPPORTED.includes(type)) throw unsupported(field, textOf(type));
    if (isDocument(value as JsonObject)) media.push({ type: 'document' });
    const image = imageOf(value as JsonObject);
    if (image === undefined) return value;
    media.push({ type: 'image', url: image.url });
    return image.rest;
  });
  return { role, parts: [{ type: 'text', text }, ...media] };
}

const UNBOUNDED: readonly string[] = ['file_id', 'file_url'];
/**
 * Types of the parts of a message that contain audio or video, and names of the fields that contain it. Some servers
 * other than OpenAI accept the types with a URL, and infer the type of a part from its field.
 */
const UNSUPPORTED: readonly unknown[] = ['input_audio', 'audio_url', 'video_url'];
/** Types of the parts of a message that contain the arguments of a tool call as an object. */
const TOOL_USES: readonly unknown[] = ['tool_use', 'server_tool_use', 'mcp_tool_use'];

function unsupported(field: string, name: string): InvalidRequestError {
  return notAllowed(`${field}: ${name}`, 'is not supported');
}

/** Whether a part of a message in any dialect contains a file that is neither text nor an image, such as a PDF. */
function isDocument({ type, source }: JsonObject): boolean {
  if (type === 'document') return isJsonObject(source) && source.type === 'base64';
  return type === 'file' || type === 'input_file';
}

/** An image in a part of a message. */
interface MessageImage {
  readonly url: string;
  /** The part of the message without the image. */
  readonly rest: JsonObject;
}

/**
 * Returns the image in a part of a message, in any dialect; undefined when the part has no image.
 * @throws InvalidRequestError NATIVE_FIELD_NOT_ALLOWED for a document by URL
 */
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
    throw notAllowed(
      'document.source',
      'refers to content whose size is unknown; send the content',
    );
  }
  return undefined;
}

/** Returns the object without the given fields, if they are strings. */
function withoutTexts(object: JsonObject, ...names: readonly string[]): JsonObject {
  const isKept = ([name, value]: [string, unknown]) =>
    !names.includes(name) || typeof value !== 'string';
  return Object.fromEntries(Object.entries(object).filter(isKept));
}
