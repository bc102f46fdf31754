import type { NativeRequest } from '@writ/contracts/writ/model/v1/model_pb';
import { InvalidRequestError, isJsonObject, type JsonObject, parseJsonStrict } from '@writ/kernel';
import type { ChatMessage, ChatPart, ChatRequest, ChatRole } from '../domain/chat/chat.ts';

/** Length limit of a body, as in the contract. */
const MAX_BYTES = 3 * 1024 * 1024;
const FIELD = 'native.body_json';

const ROLES: ReadonlyMap<unknown, ChatRole> = new Map([
  ['system', 'system'],
  ['developer', 'system'],
  ['user', 'user'],
  ['assistant', 'assistant'],
  ['tool', 'tool'],
  ['function', 'tool'],
]);

/** Tools that the caller executes; a provider would execute any other by itself, without a review. */
const CALLER_TOOLS: readonly unknown[] = ['function', 'custom'];
const TIERS: readonly unknown[] = [undefined, null, 'auto', 'default'];

/** A native request with what the meter must know of it. */
export interface ReadNativeRequest {
  readonly chat: ChatRequest;
  readonly maxOutputTokens: bigint | undefined;
}

/**
 * Reads a request in the format of chat completions (AP-2). Unknown fields are passed on. What could cost more than is
 * reserved, or act without a review, is refused: several answers, audio, service tiers with other prices, and tools of
 * the provider.
 * @throws InvalidRequestError NATIVE_FIELD_NOT_ALLOWED naming the field, or what parseJsonStrict throws
 */
export function readNativeRequest({ bodyJson }: NativeRequest): ReadNativeRequest {
  const body = parseJsonStrict(bodyJson, { field: FIELD, maxBytes: MAX_BYTES, maxDepth: 64 });
  if (!isJsonObject(body)) throw notAllowed('body', 'must be a JSON object');
  assertBounded(body);
  const { messages, tools, stream, stream_options: streaming, ...rest } = body;
  if (!Array.isArray(messages) || messages.length === 0) {
    throw notAllowed('messages', 'must be a list with at least one message');
  }
  const settings: ChatMessage = {
    role: 'system',
    parts: [{ type: 'text', text: JSON.stringify(rest) }],
  };
  return {
    chat: {
      messages: [settings, ...messages.map(messageOf)],
      tools: (Array.isArray(tools) ? tools : []).map((tool) => ({
        name: '',
        description: '',
        inputSchema: { tool },
      })),
      toolChoice: undefined,
      temperature: undefined,
      json: false,
      native: {
        body,
        stream: stream === true,
        includeUsage: isJsonObject(streaming) && streaming.include_usage === true,
      },
    },
    maxOutputTokens: outputLimitOf(body),
  };
}

function assertBounded(body: JsonObject): void {
  const { n, modalities, audio, service_tier: tier, tools, web_search_options: search } = body;
  if (n !== undefined && n !== null && n !== 1) throw notAllowed('n', 'must be 1');
  if (audio !== undefined && audio !== null) throw notAllowed('audio', 'is not supported');
  const speaks = Array.isArray(modalities) && modalities.some((mode) => mode !== 'text');
  if (speaks) throw notAllowed('modalities', 'must be text only');
  if (!TIERS.includes(tier)) throw notAllowed('service_tier', 'must be auto or default');
  if (search !== undefined && search !== null) {
    throw notAllowed('web_search_options', 'names a tool that the provider executes unreviewed');
  }
  for (const [index, tool] of (Array.isArray(tools) ? tools : []).entries()) {
    if (isJsonObject(tool) && CALLER_TOOLS.includes(tool.type)) continue;
    throw notAllowed(`tools[${index}]`, 'is executed by the provider, unreviewed');
  }
}

function outputLimitOf(body: JsonObject): bigint | undefined {
  for (const field of ['max_completion_tokens', 'max_tokens'] as const) {
    const limit = body[field];
    if (limit === undefined || limit === null) continue;
    if (typeof limit === 'number' && Number.isSafeInteger(limit) && limit >= 1)
      return BigInt(limit);
    throw notAllowed(field, 'must be a whole number of at least 1');
  }
  return undefined;
}

/** What a message measures: its text as JSON, which is never shorter, and its images. */
function messageOf(message: unknown, index: number): ChatMessage {
  const role = isObject(message) ? ROLES.get(message.role) : undefined;
  if (!isObject(message) || role === undefined) {
    throw notAllowed(`messages[${index}].role`, 'is unknown');
  }
  const images: ChatPart[] = [];
  const text = JSON.stringify(message, (name, value: unknown) => {
    const url = name === 'image_url' && isObject(value) ? value.url : undefined;
    if (typeof url !== 'string') return value;
    images.push({ type: 'image', url });
    return undefined;
  });
  return { role, parts: [{ type: 'text', text }, ...images] };
}

function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null;
}

function notAllowed(field: string, rule: string): InvalidRequestError {
  return new InvalidRequestError('NATIVE_FIELD_NOT_ALLOWED', `${field} ${rule}.`, { field });
}
