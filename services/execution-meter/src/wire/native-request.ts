import { Dialect, type NativeRequest } from '@writ/contracts/writ/model/v1/model_pb';
import { InvalidRequestError, isJsonObject, parseJsonStrict } from '@writ/kernel';
import type { ChatRequest, DialectName } from '../domain/chat/chat.ts';
import { DIALECTS } from '../domain/dialects/index.ts';

/** Length limit of a body, as in the contract. */
const MAX_BYTES = 3 * 1024 * 1024;
const FIELD = 'native.body_json';

const NAMES: Readonly<Partial<Record<Dialect, DialectName>>> = {
  [Dialect.OPENAI_CHAT]: 'chat_completions',
  [Dialect.OPENAI_RESPONSES]: 'responses',
  [Dialect.ANTHROPIC_MESSAGES]: 'messages',
};
/** Names of the client headers that providers need; others are dropped. */
const HEADERS: readonly string[] = ['anthropic-version', 'anthropic-beta'];

/** A parsed native request. */
export interface ReadNativeRequest {
  readonly chat: ChatRequest;
  readonly maxOutputTokens: bigint | undefined;
}

/**
 * Reads a request in the format of a provider (AP-2). Unknown fields are passed to the provider. Requests that could
 * cost more than the reservation, or have effects without a review, are rejected: multiple answers, audio, content of
 * unknown size, service tiers with other prices, and tools that the provider executes.
 * @throws InvalidRequestError NATIVE_FIELD_NOT_ALLOWED or HOSTED_TOOL_NOT_ALLOWED naming the field, or the errors of
 *   parseJsonStrict
 */
export function readNativeRequest(native: NativeRequest): ReadNativeRequest {
  const body = parseJsonStrict(native.bodyJson, {
    field: FIELD,
    maxBytes: MAX_BYTES,
    maxDepth: 64,
  });
  const dialect = NAMES[native.dialect];
  if (!isJsonObject(body) || dialect === undefined) {
    throw new InvalidRequestError(
      'NATIVE_FIELD_NOT_ALLOWED',
      'native.body_json must be a JSON object, and native.dialect a known dialect.',
      { field: FIELD },
    );
  }
  const { messages, tools, maxOutputTokens, ...limits } = DIALECTS[dialect].read(body);
  return {
    chat: {
      messages,
      tools: tools.map((tool) => ({ name: '', description: '', inputSchema: { tool } })),
      toolChoice: undefined,
      temperature: undefined,
      json: false,
      addedTokens: limits.addedTokens,
      cacheWrites: limits.cacheWrites,
      native: {
        dialect,
        body,
        headers: Object.fromEntries(
          Object.entries(native.headers).filter(([name]) => HEADERS.includes(name)),
        ),
        references: limits.references,
        stream: limits.stream,
        includeUsage: limits.includeUsage,
      },
    },
    maxOutputTokens,
  };
}
