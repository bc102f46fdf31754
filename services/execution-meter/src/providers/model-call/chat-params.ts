import type OpenAI from 'openai';
import type { ChatMessage, ChatPart, ChatTool, ToolChoice } from '../../domain/chat/chat.ts';
import type { Attempt } from '../provider.ts';

type Params = OpenAI.Chat.Completions.ChatCompletionCreateParams;
type Message = OpenAI.Chat.Completions.ChatCompletionMessageParam;
type Tool = OpenAI.Chat.Completions.ChatCompletionTool;
type Choice = OpenAI.Chat.Completions.ChatCompletionToolChoiceOption;

/** Converts a chat request to parameters of OpenAI chat completions (EM-8). */
export function chatParams({ model, chat, maxOutputTokens }: Attempt): Params {
  return {
    model: model.providerModel,
    messages: chat.messages.flatMap(toMessages),
    [model.outputCapField]: Number(maxOutputTokens),
    ...(chat.temperature === undefined ? {} : { temperature: chat.temperature }),
    ...(chat.tools.length === 0 ? {} : { tools: chat.tools.map(toTool) }),
    ...(chat.toolChoice === undefined ? {} : { tool_choice: toChoice(chat.toolChoice) }),
    ...(chat.json ? { response_format: { type: 'json_object' } } : {}),
    ...(model.streaming ? { stream: true, stream_options: { include_usage: true } } : {}),
  };
}

function toMessages({ role, parts }: ChatMessage): Message[] {
  switch (role) {
    case 'system':
      return [{ role, content: textOf(parts) }];
    case 'user':
      return [{ role, content: userContent(parts) }];
    case 'assistant':
      return [assistantMessage(parts)];
    case 'tool':
      // OpenAI expects one message per result.
      return parts.flatMap((part): Message[] =>
        part.type === 'tool_result' ? [{ role, tool_call_id: part.id, content: part.content }] : [],
      );
  }
}

function userContent(
  parts: readonly ChatPart[],
): string | OpenAI.Chat.Completions.ChatCompletionContentPart[] {
  if (parts.every(({ type }) => type === 'text')) return textOf(parts);
  return parts.flatMap((part): OpenAI.Chat.Completions.ChatCompletionContentPart[] => {
    if (part.type === 'text') return [{ type: 'text', text: part.text }];
    return part.type === 'image' ? [{ type: 'image_url', image_url: { url: part.url } }] : [];
  });
}

function assistantMessage(
  parts: readonly ChatPart[],
): OpenAI.Chat.Completions.ChatCompletionAssistantMessageParam {
  const uses = parts.filter((part) => part.type === 'tool_use');
  const text = textOf(parts);
  return {
    role: 'assistant',
    content: text === '' && uses.length > 0 ? null : text,
    ...(uses.length === 0
      ? {}
      : {
          tool_calls: uses.map(({ id, tool, argumentsJson }) => ({
            id,
            type: 'function',
            function: { name: tool, arguments: argumentsJson },
          })),
        }),
  };
}

function textOf(parts: readonly ChatPart[]): string {
  return parts.map((part) => (part.type === 'text' ? part.text : '')).join('');
}

function toTool({ name, description, inputSchema }: ChatTool): Tool {
  return {
    type: 'function',
    function: {
      name,
      ...(description === '' ? {} : { description }),
      parameters: { ...inputSchema },
    },
  };
}

function toChoice(choice: ToolChoice): Choice {
  return typeof choice === 'string'
    ? choice
    : { type: 'function', function: { name: choice.tool } };
}
