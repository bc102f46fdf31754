import {
  type Fields,
  fieldsOf,
  isJsonObject,
  type JsonObject,
  type JsonValue,
  listOf,
  textOf,
} from '@writ/kernel';
import type { EndReason } from '../chat/chat.ts';
import type { AnswerPart, BoundedRequest, Dialect } from './dialect.ts';
import {
  assertOneOf,
  atMost,
  countOf,
  hostedTool,
  indexOf,
  isSet,
  measured,
  notAllowed,
  outputLimitOf,
} from './fields.ts';

/** Tools that the caller executes. */
const CALLER_TOOLS: readonly unknown[] = ['function', 'custom', 'local_shell', 'apply_patch'];
/** Tokens that the provider adds to a prompt. */
const ADDED_TOKENS = 64n;
const INCOMPLETE: Readonly<Record<string, EndReason>> = {
  max_output_tokens: 'max_tokens',
  content_filter: 'content_filter',
};

/** The Responses API of OpenAI. */
export const responses: Dialect = {
  api: 'openai',
  path: '/responses',
  issuesIds: true,
  read(body): BoundedRequest {
    assertBounded(body);
    const { input, tools, stream, ...rest } = body;
    const isText = typeof input === 'string' && input !== '';
    const items = Array.isArray(input) ? input : [];
    if (!isText && items.length === 0) {
      throw notAllowed('input', 'must be a non-empty string or a list with at least one item');
    }
    return {
      messages: [
        measured('system', rest, 'body'),
        ...(isText ? [measured('user', input, 'input')] : items.map(itemOf)),
      ],
      tools: listOf(tools),
      addedTokens: ADDED_TOKENS,
      references: { previousId: previousIdOf(body), items: items.flatMap(referenceOf) },
      cacheWrites: 'none',
      maxOutputTokens: outputLimitOf(body, 'max_output_tokens'),
      stream: stream === true,
      includeUsage: true,
    };
  },
  bodyFor: ({ body, stream }, { model, maxOutputTokens, mayStore }) => ({
    ...body,
    ...(Array.isArray(body.input) && { input: body.input.map(withoutUnissuedId) }),
    model: model.providerModel,
    max_output_tokens: Number(maxOutputTokens),
    stream: stream && model.streaming,
    ...(!mayStore && { store: false }),
  }),
  partOf(event) {
    switch (event.type) {
      case 'response.created':
        return { ...envelopeOf(fieldsOf(event.response)), isAnswer: true };
      case 'response.output_text.delta':
      case 'response.refusal.delta':
        return { text: textOf(event.delta) };
      case 'response.output_item.added':
        return startedItemOf(fieldsOf(event.item), indexOf(event.output_index));
      case 'response.function_call_arguments.delta':
      case 'response.custom_tool_call_input.delta':
        return argumentsOf(textOf(event.delta), indexOf(event.output_index));
      case 'response.completed':
      case 'response.incomplete':
      case 'response.failed': {
        const response = fieldsOf(event.response);
        const itemIds = itemIdsOf(response);
        return { ...envelopeOf(response), ...endOf(response), itemIds, isLast: true };
      }
      default:
        return { otherContent: textOf(event.delta) };
    }
  },
  wholeOf(response) {
    const parts = listOf(response.output).map((item, index) => wholeItemOf(fieldsOf(item), index));
    return {
      ...envelopeOf(response),
      ...endOf(response),
      isAnswer: response.object === 'response',
      text: parts.map(({ text = '' }) => text).join(''),
      toolUses: parts.flatMap(({ toolUses = [] }) => toolUses),
      itemIds: itemIdsOf(response),
    };
  },
  readUsage(usage) {
    const input = countOf(usage.input_tokens);
    const output = countOf(usage.output_tokens);
    if (input === undefined || output === undefined) return undefined;
    const cached = countOf(fieldsOf(usage.input_tokens_details).cached_tokens) ?? 0n;
    const reasoning = countOf(fieldsOf(usage.output_tokens_details).reasoning_tokens) ?? 0n;
    return {
      input,
      cachedInput: atMost(cached, input),
      cacheWrite: 0n,
      output,
      reasoning: atMost(reasoning, output),
    };
  },
  cut: ({ responseId: id, model }) => [
    {
      type: 'response.incomplete',
      response: {
        id,
        object: 'response',
        model,
        status: 'incomplete',
        incomplete_details: { reason: 'max_output_tokens' },
        output: [],
      },
    },
  ],
};

function assertBounded(body: JsonObject): void {
  assertOneOf(body, 'background', [false]);
  assertOneOf(body, 'service_tier', ['auto', 'default']);
  for (const field of ['conversation', 'prompt'] as const) {
    if (isSet(body[field])) throw notAllowed(field, 'refers to content whose size is unknown');
  }
  assertToolsOfCaller(listOf(body.tools), 'tools');
}

function assertToolsOfCaller(tools: readonly unknown[], field: string): void {
  for (const [index, tool] of tools.entries()) {
    const { type, tools: nested, environment } = fieldsOf(tool);
    const at = `${field}[${index}]`;
    if (type === 'namespace') assertToolsOfCaller(listOf(nested), `${at}.tools`);
    else if (type === 'shell' && fieldsOf(environment).type === 'local') continue;
    else if (!CALLER_TOOLS.includes(type)) throw hostedTool(at);
  }
}

function itemOf(item: JsonValue, index: number) {
  const field = `input[${index}]`;
  if (!isJsonObject(item)) throw notAllowed(field, 'must be an object');
  return measured('user', item, field);
}

function previousIdOf({ previous_response_id: id }: JsonObject): string | undefined {
  if (id === undefined || id === null) return undefined;
  if (typeof id === 'string' && id !== '') return id;
  throw notAllowed('previous_response_id', 'must be the id of a response');
}

/** Ids that agent-proxy gives to the items of recorded answers; the provider did not issue them. */
const PROXY_ID = /^(msg|fc)_writ_/;

/**
 * Whether the client wrote an item: a message with a role other than assistant, or a tool result. Codex gives these
 * items ids that the provider has not issued.
 */
function isWritten({ type, role, content, output }: Fields): boolean {
  if (typeof type === 'string' && type.endsWith('_output')) return output !== undefined;
  const isMessage = type === undefined || type === 'message';
  return isMessage && content !== undefined && typeof role === 'string' && role !== 'assistant';
}

/**
 * Returns the id of an item that refers to an earlier answer; `stored` means that the provider adds the content of the
 * item to the prompt.
 */
function referenceOf(item: JsonValue) {
  const { type, id, encrypted_content: encrypted } = fieldsOf(item);
  if (typeof id !== 'string' || id === '' || PROXY_ID.test(id) || isWritten(fieldsOf(item)))
    return [];
  const isEmpty = type === 'reasoning' && typeof encrypted !== 'string';
  return [{ id, stored: type === 'item_reference' || isEmpty }];
}

/** Returns the item without its id, unless the provider issued the id. */
function withoutUnissuedId(item: JsonValue): JsonValue {
  if (!isJsonObject(item) || typeof item.id !== 'string') return item;
  if (!PROXY_ID.test(item.id) && !isWritten(item)) return item;
  const { id: _, ...rest } = item;
  return rest;
}

function itemIdsOf({ output }: Fields): string[] {
  return listOf(output)
    .map((item) => textOf(fieldsOf(item).id))
    .filter((id) => id !== '');
}

function startedItemOf(item: Fields, index: number | undefined): AnswerPart {
  return { ...toolPartOf(item, index, 'start'), itemIds: [textOf(item.id)] };
}

function envelopeOf({ id, model, usage }: Fields): AnswerPart {
  return { responseId: id, model, usage };
}

function endOf({ status, incomplete_details: details }: Fields): AnswerPart {
  if (status === 'completed') return { finishReason: status, endReason: 'end_turn' };
  if (status === 'incomplete') {
    const finishReason = textOf(fieldsOf(details).reason) || status;
    return { finishReason, endReason: INCOMPLETE[finishReason] };
  }
  return status === 'failed' ? { hasFailed: true } : {};
}

function wholeItemOf(item: Fields, index: number): AnswerPart {
  if (item.type !== 'message') return toolPartOf(item, index, 'whole');
  const parts = listOf(item.content).map((part) => {
    const { text, refusal } = fieldsOf(part);
    return textOf(text ?? refusal);
  });
  return { text: parts.join('') };
}

function toolPartOf(item: Fields, index: number | undefined, at: 'start' | 'whole'): AnswerPart {
  const { type, call_id: callId, name, arguments: json, input, action } = item;
  if (typeof type !== 'string' || !type.endsWith('_call')) return {};
  // In a stream, later events contain the arguments.
  const given = textOf(json ?? input) || (action === undefined ? '' : JSON.stringify(action));
  const argumentsJson = at === 'whole' ? given : '';
  return {
    toolUses: [{ index, id: textOf(callId), tool: textOf(name) || type, argumentsJson }],
  };
}

function argumentsOf(argumentsJson: string, index: number | undefined): AnswerPart {
  return { toolUses: [{ index, id: '', tool: '', argumentsJson }] };
}
