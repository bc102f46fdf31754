import { isJsonObject, type JsonValue } from '@writ/kernel';

/** The header with the id of an existing run of the client's agent key. */
const RUN_HEADER = 'x-writ-run';

/**
 * The headers by which clients name their conversation, in order of precedence. Codex sends the last two.
 */
const CONVERSATION_HEADERS = [
  'x-writ-conversation',
  'x-claude-code-session-id',
  'session-id',
  'session_id',
] as const;

/** The headers of a request, with names in lower case. */
export type Headers = Readonly<Record<string, string | readonly string[] | undefined>>;

/** The run or conversation to which a client assigns its request. */
export interface ConversationHint {
  readonly kind: 'run' | 'conversation';
  readonly name: string;
}

/**
 * Returns the run or conversation that a request names; headers take precedence over the body. Returns undefined when
 * the request names neither (AP-1).
 * @param readBody reads the body as JSON; undefined for requests without one
 */
export async function hintOf(
  headers: Headers,
  readBody: (() => Promise<JsonValue>) | undefined,
): Promise<ConversationHint | undefined> {
  return hintOfHeaders(headers) ?? (readBody && hintOfBody(await readBody()));
}

/**
 * Returns the run or conversation that the headers of a request name; a run takes precedence over a conversation.
 * Returns undefined when they name neither. A legacy `Mcp-Session-Id` is ignored, because an MCP session does not
 * correspond to a conversation: a client can open several.
 */
export function hintOfHeaders(headers: Headers): ConversationHint | undefined {
  const run = textOf(headers, RUN_HEADER);
  if (run !== '') return { kind: 'run', name: run };
  const name = CONVERSATION_HEADERS.map((header) => textOf(headers, header)).find(
    (value) => value !== '',
  );
  return name === undefined ? undefined : { kind: 'conversation', name };
}

/** Returns the conversation that the body of a model request names: `prompt_cache_key`, then `metadata.session_id`. */
export function hintOfBody(body: JsonValue): ConversationHint | undefined {
  if (!isJsonObject(body)) return undefined;
  const { prompt_cache_key: cacheKey, metadata } = body;
  const sessionId = isJsonObject(metadata) ? metadata.session_id : undefined;
  const name = [cacheKey, sessionId].find(
    (value): value is string => typeof value === 'string' && value !== '',
  );
  return name === undefined ? undefined : { kind: 'conversation', name };
}

function textOf(headers: Headers, name: string): string {
  const value = headers[name];
  return typeof value === 'string' ? value.trim() : '';
}
