import { createHash } from 'node:crypto';

/** One message of the request. */
export interface ChatMessage {
  readonly role: string;
  /** Text content; parts are joined by newlines. */
  readonly text: string;
}

/** The fields of a chat completions request that the simulator uses. */
export interface ChatRequest {
  readonly model: string;
  readonly messages: readonly ChatMessage[];
  readonly stream: boolean;
  readonly includeUsage: boolean;
  /** Whether the answer must be one JSON object. */
  readonly jsonMode: boolean;
  /** Names of the offered tools. */
  readonly tools: readonly string[];
  /** Name of the tool that the model must call, if the request sets `tool_choice` to a tool. */
  readonly toolChoice?: string;
  /** Sampling temperature, when the request sets one; the simulator ignores it. */
  readonly temperature?: number;
  /** Limit of completion tokens, when the request sets one. */
  readonly maxTokens?: number;
  /** SHA-256 of the messages as JSON without white space, hex. */
  readonly digest: string;
  /** Estimated prompt tokens: a quarter of the characters of messages and tools as JSON, plus 4 per message. */
  readonly promptTokens: number;
}

/** Thrown for a body that a provider would answer with 400. */
export class BadChatRequestError extends Error {
  /** The invalid field. */
  readonly param: string;

  constructor(param: string, message: string) {
    super(message);
    this.name = 'BadChatRequestError';
    this.param = param;
  }
}

/**
 * Parses the body of a chat completions request. Other fields are ignored.
 * @throws BadChatRequestError naming the field
 */
export function readChatRequest(body: string): ChatRequest {
  const request = parseObject(body);
  const { model, messages, stream, tools } = request;
  if (typeof model !== 'string' || model === '') {
    throw new BadChatRequestError('model', 'you must provide a model parameter');
  }
  if (!Array.isArray(messages) || messages.length === 0) {
    throw new BadChatRequestError(
      'messages',
      "'messages' must be a list with at least one message",
    );
  }
  if (request.n !== undefined && request.n !== null && request.n !== 1) {
    throw new BadChatRequestError('n', 'The simulator returns one choice; n must be 1');
  }
  const options = asObject(request.stream_options);
  if (options !== undefined && stream !== true) {
    throw new BadChatRequestError(
      'stream_options',
      "The 'stream_options' parameter is only allowed when 'stream' is enabled",
    );
  }
  const { temperature } = request;
  const toolChoice = asObject(request.tool_choice)?.function;
  const maxTokens = request.max_completion_tokens ?? request.max_tokens;
  const sent = JSON.stringify(messages);
  return {
    model,
    messages: messages.map(readMessage),
    stream: stream === true,
    includeUsage: options?.include_usage === true,
    jsonMode: asObject(request.response_format)?.type === 'json_object',
    tools: (Array.isArray(tools) ? tools : []).map(nameOfTool),
    ...(toolChoice === undefined ? {} : { toolChoice: nameOfTool({ function: toolChoice }) }),
    ...(typeof temperature === 'number' ? { temperature } : {}),
    ...(typeof maxTokens === 'number' ? { maxTokens } : {}),
    digest: createHash('sha256').update(sent).digest('hex'),
    promptTokens: 4 * messages.length + tokensOf(sent) + tokensOf(JSON.stringify(tools ?? '')),
  };
}

/** Estimates tokens: a quarter of the characters, rounded up. */
export function tokensOf(text: string): number {
  return Math.ceil(text.length / 4);
}

function readMessage(message: unknown, index: number): ChatMessage {
  const { role, content } = asObject(message) ?? {};
  if (typeof role !== 'string') {
    throw new BadChatRequestError(`messages.${index}.role`, `messages[${index}] has no role`);
  }
  return { role: role === 'developer' ? 'system' : role, text: textOf(content) };
}

function nameOfTool(tool: unknown): string {
  return String(asObject(asObject(tool)?.function)?.name ?? '');
}

function textOf(content: unknown): string {
  if (typeof content === 'string') return content;
  if (!Array.isArray(content)) return '';
  return content
    .map((part) => asObject(part)?.text)
    .filter((text) => typeof text === 'string')
    .join('\n');
}

function parseObject(body: string): Record<string, unknown> {
  let parsed: unknown;
  try {
    parsed = JSON.parse(body);
  } catch {
    throw new BadChatRequestError('body', 'We could not parse the JSON body of your request.');
  }
  const request = asObject(parsed);
  if (request === undefined) throw new BadChatRequestError('body', 'The body must be an object.');
  return request;
}

function asObject(value: unknown): Record<string, unknown> | undefined {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
    ? (value as Record<string, unknown>)
    : undefined;
}
