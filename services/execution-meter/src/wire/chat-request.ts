import {
  type ContentPart,
  ToolChoice as ContractChoice,
  ChatRole as ContractRole,
  ResponseFormat,
  type ToolSpec,
} from '@writ/contracts/writ/model/v1/model_pb';
import type { GenerateRequest } from '@writ/contracts/writ/model/v1/model_service_pb';
import { InvalidRequestError, isJsonObject, type JsonValue, type ReasonOf } from '@writ/kernel';
import type {
  ChatMessage,
  ChatPart,
  ChatRequest,
  ChatRole,
  ChatTool,
  ToolChoice,
} from '../domain/chat/chat.ts';

const ROLES: Readonly<Record<ContractRole, ChatRole | undefined>> = {
  [ContractRole.UNSPECIFIED]: undefined,
  [ContractRole.SYSTEM]: 'system',
  [ContractRole.USER]: 'user',
  [ContractRole.ASSISTANT]: 'assistant',
  [ContractRole.TOOL]: 'tool',
};

/** Permitted parts by role. */
const PARTS: Readonly<Record<ChatRole, readonly ChatPart['type'][]>> = {
  system: ['text'],
  user: ['text', 'image'],
  assistant: ['text', 'tool_use'],
  tool: ['tool_result'],
};

/**
 * Converts a GenerateRequest to a chat request.
 * @throws InvalidRequestError INVALID_MESSAGE, INVALID_TOOL, INVALID_TOOL_CHOICE with the field
 */
export function readChatRequest(request: GenerateRequest): ChatRequest {
  const tools = request.tools.map(readTool);
  const names = tools.map(({ name }) => name);
  return {
    messages: request.messages.map(({ role, parts }, index) =>
      readMessage(ROLES[role], parts, `messages[${index}]`),
    ),
    tools,
    toolChoice: readChoice(request, names),
    temperature: request.temperature,
    json: request.responseFormat === ResponseFormat.JSON_OBJECT,
  };
}

function readMessage(
  role: ChatRole | undefined,
  parts: readonly ContentPart[],
  field: string,
): ChatMessage {
  if (role === undefined) throw invalidField('INVALID_MESSAGE', `${field}.role`, 'is required');
  if (parts.length === 0)
    throw invalidField('INVALID_MESSAGE', `${field}.parts`, 'must not be empty');
  return {
    role,
    parts: parts.map((part, index) => {
      const read = readPart(part);
      if (read?.type === 'image' && !/^(https:|data:image\/)/i.test(read.url)) {
        throw invalidField(
          'INVALID_MESSAGE',
          `${field}.parts[${index}].image.url`,
          'must be an https or data:image URL',
        );
      }
      if (read !== undefined && PARTS[role].includes(read.type)) return read;
      const allowed = PARTS[role].join(' or ');
      throw invalidField(
        'INVALID_MESSAGE',
        `${field}.parts[${index}]`,
        `must be ${allowed} for role ${role}`,
      );
    }),
  };
}

function readPart({ kind }: ContentPart): ChatPart | undefined {
  switch (kind.case) {
    case 'text':
      return { type: 'text', text: kind.value };
    case 'image':
      return { type: 'image', url: kind.value.url };
    case 'toolUse': {
      const { toolUseId: id, tool, argumentsJson } = kind.value;
      return { type: 'tool_use', id, tool, argumentsJson };
    }
    case 'toolResult': {
      const { toolUseId: id, content, isError } = kind.value;
      return { type: 'tool_result', id, content, isError };
    }
    default:
      return undefined;
  }
}

function readTool({ name, description, inputSchemaJson }: ToolSpec, index: number): ChatTool {
  const field = `tools[${index}].input_schema_json`;
  if (inputSchemaJson === '') {
    return { name, description, inputSchema: { type: 'object', properties: {} } };
  }
  let schema: JsonValue;
  try {
    schema = JSON.parse(inputSchemaJson) as JsonValue;
  } catch {
    throw invalidField('INVALID_TOOL', field, 'must be a JSON Schema');
  }
  if (!isJsonObject(schema)) throw invalidField('INVALID_TOOL', field, 'must be a JSON object');
  return { name, description, inputSchema: schema };
}

function readChoice(
  { toolChoice, toolChoiceName }: GenerateRequest,
  tools: readonly string[],
): ToolChoice | undefined {
  // Providers reject a tool choice without tools.
  if (tools.length === 0) {
    if (toolChoice === ContractChoice.REQUIRED || toolChoice === ContractChoice.NAMED) {
      throw invalidField(
        'INVALID_TOOL_CHOICE',
        'tool_choice',
        'requires a tool, but tools is empty',
      );
    }
    return undefined;
  }
  switch (toolChoice) {
    case ContractChoice.UNSPECIFIED:
      return undefined;
    case ContractChoice.AUTO:
      return 'auto';
    case ContractChoice.NONE:
      return 'none';
    case ContractChoice.REQUIRED:
      return 'required';
    case ContractChoice.NAMED:
      if (tools.includes(toolChoiceName)) return { tool: toolChoiceName };
      throw invalidField(
        'INVALID_TOOL_CHOICE',
        'tool_choice_name',
        `must be one of: ${tools.join(', ')}`,
      );
  }
  return undefined;
}

function invalidField(
  reason: ReasonOf<'invalid_argument'>,
  field: string,
  rule: string,
): InvalidRequestError {
  return new InvalidRequestError(reason, `${field} ${rule}.`, { field });
}
