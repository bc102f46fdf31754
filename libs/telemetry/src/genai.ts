/**
 * The OpenTelemetry GenAI semantic conventions that Writ uses (SYS-1). They are still in development; this file
 * contains all names, so that only this file must change when a convention changes.
 */

/** Span name of one agent's run. */
export function invokeAgentSpan(agent: string): string {
  return `invoke_agent ${agent}`;
}

/** Span name of one model call. */
export function chatSpan(model: string): string {
  return `chat ${model}`;
}

/** Span name of one tool execution. */
export function executeToolSpan(tool: string): string {
  return `execute_tool ${tool}`;
}

/** Values of {@link ATTR_GEN_AI_OPERATION_NAME}. */
export const GenAiOperation = {
  invokeAgent: 'invoke_agent',
  createAgent: 'create_agent',
  chat: 'chat',
  executeTool: 'execute_tool',
} as const;

/** One of the operation names. */
export type GenAiOperation = (typeof GenAiOperation)[keyof typeof GenAiOperation];

/** The operation of the span, one of {@link GenAiOperation}. */
export const ATTR_GEN_AI_OPERATION_NAME = 'gen_ai.operation.name';
/** The provider of the model, such as `openai`. */
export const ATTR_GEN_AI_PROVIDER_NAME = 'gen_ai.provider.name';
/** Id of the agent: its instance. */
export const ATTR_GEN_AI_AGENT_ID = 'gen_ai.agent.id';
/** Name of the agent from its manifest. */
export const ATTR_GEN_AI_AGENT_NAME = 'gen_ai.agent.name';
/** The description of the agent, from its manifest. */
export const ATTR_GEN_AI_AGENT_DESCRIPTION = 'gen_ai.agent.description';
/** Version of the agent's manifest. */
export const ATTR_GEN_AI_AGENT_VERSION = 'gen_ai.agent.version';
/** The conversation: Writ's session_id (SUP-2). */
export const ATTR_GEN_AI_CONVERSATION_ID = 'gen_ai.conversation.id';
/** The requested model. */
export const ATTR_GEN_AI_REQUEST_MODEL = 'gen_ai.request.model';
/** The requested temperature. */
export const ATTR_GEN_AI_REQUEST_TEMPERATURE = 'gen_ai.request.temperature';
/** The requested maximum of completion tokens. */
export const ATTR_GEN_AI_REQUEST_MAX_TOKENS = 'gen_ai.request.max_tokens';
/** Whether the response was streamed. */
export const ATTR_GEN_AI_REQUEST_STREAM = 'gen_ai.request.stream';
/** The requested output type: `text` or `json`. */
export const ATTR_GEN_AI_OUTPUT_TYPE = 'gen_ai.output.type';
/** The model of the response. */
export const ATTR_GEN_AI_RESPONSE_MODEL = 'gen_ai.response.model';
/** The provider's id of the response. */
export const ATTR_GEN_AI_RESPONSE_ID = 'gen_ai.response.id';
/** The finish reasons, one per choice. */
export const ATTR_GEN_AI_RESPONSE_FINISH_REASONS = 'gen_ai.response.finish_reasons';
/** Seconds until the first chunk of a streamed response. */
export const ATTR_GEN_AI_RESPONSE_TIME_TO_FIRST_CHUNK = 'gen_ai.response.time_to_first_chunk';
/** Prompt tokens, including cached ones. */
export const ATTR_GEN_AI_USAGE_INPUT_TOKENS = 'gen_ai.usage.input_tokens';
/** Completion tokens. */
export const ATTR_GEN_AI_USAGE_OUTPUT_TOKENS = 'gen_ai.usage.output_tokens';
/** Prompt tokens that the provider read from its cache. */
export const ATTR_GEN_AI_USAGE_CACHE_READ_INPUT_TOKENS = 'gen_ai.usage.cache_read.input_tokens';
export const ATTR_GEN_AI_USAGE_CACHE_CREATION_INPUT_TOKENS =
  'gen_ai.usage.cache_creation.input_tokens';
/** Whether tokens are `input` or `output`; a metric label. */
export const ATTR_GEN_AI_TOKEN_TYPE = 'gen_ai.token.type';
/** Name of the tool. */
export const ATTR_GEN_AI_TOOL_NAME = 'gen_ai.tool.name';
/** Id of the tool call: Writ's call_id. */
export const ATTR_GEN_AI_TOOL_CALL_ID = 'gen_ai.tool.call.id';
/** The kind of tool: `function`, `extension` or `datastore`. */
export const ATTR_GEN_AI_TOOL_TYPE = 'gen_ai.tool.type';
/** The prompt messages as JSON; only when content is captured. */
export const ATTR_GEN_AI_INPUT_MESSAGES = 'gen_ai.input.messages';
/** The response messages as JSON; only when content is captured. */
export const ATTR_GEN_AI_OUTPUT_MESSAGES = 'gen_ai.output.messages';
/** Host of the provider. */
export const ATTR_SERVER_ADDRESS = 'server.address';
/** Port of the provider. */
export const ATTR_SERVER_PORT = 'server.port';
/** The reason code or error class of a failed operation, never a message. */
export const ATTR_ERROR_TYPE = 'error.type';
