import { newId } from '@writ/kernel';
import type { TestPlatform } from '@writ/testing/platform';
import { expect } from 'vitest';
import { ALIAS, CLAUDE, type ExternalRun, proxyPlatform } from '../agent-proxy/external-run.ts';
import { answerWith, type ScriptedAnswer } from '../agent-proxy/scripted-calls.ts';
import {
  type ModelRequest,
  type ScriptedModel,
  scriptedModel,
} from '../agent-proxy/scripted-model.ts';

/** Agents with reviewed answers, and one agent without review. */
export const REVIEWED_AGENTS = `
agents:
  - name: support-bot
    kind: external
    model: { model: ${ALIAS}, also_allowed: [${CLAUDE}] }
    options: { client_tools: review }
  - name: hasty-bot
    kind: external
    model: { model: ${ALIAS}, also_allowed: [${CLAUDE}] }
    options: { client_tools: review, hold: 1s }
  - name: strict-bot
    kind: external
    model: { model: ${ALIAS}, also_allowed: [${CLAUDE}] }
    on_refusal: stop
    options: { client_tools: review }
  - name: unreviewed-bot
    kind: external
    model: { model: ${ALIAS} }
`;

/** Policy for shell calls: approves `ls`, blocks `rm -rf /`, and escalates every other command to a person. */
export const CALL_POLICY = `
policy: shell
rules:
  - { id: list, match: { kind: client_tool, tool: shell }, when: 'args.command == "ls"', decide: approve, reason: harmless }
  - { id: never, match: { kind: client_tool, tool: shell }, when: 'args.command == "rm -rf /"', decide: block, reason: destroys_all, risk: 99 }
  - { id: ask, match: { kind: client_tool, tool: shell }, decide: escalate, reason: shell, editable: [command] }
  - { id: seen, match: { kind: client_tool, tool: shell }, decide: approve, reason: seen_by_a_person }
human: { four_eyes: false }
`;

/** Starts a platform with a scripted model and agents with reviewed answers. */
export async function reviewedPlatform(model: ScriptedModel): Promise<TestPlatform> {
  const files = { WRIT_AGENTS_FILE: REVIEWED_AGENTS, WRIT_POLICY_FILE: CALL_POLICY };
  return await proxyPlatform(model, files);
}

/**
 * Starts a model that gives these answers in order, one for each request, and then repeats the last one; `next`
 * replaces the repeated answer.
 */
export async function modelOf(
  ...answers: readonly ScriptedAnswer[]
): Promise<ScriptedModel & { next: ScriptedAnswer }> {
  const left = [...answers];
  const model = await scriptedModel((request, response) => {
    scripted.next = left.shift() ?? scripted.next;
    answerWith(request, response, scripted.next);
  });
  const scripted = { ...model, next: {} as ScriptedAnswer };
  return scripted;
}

/** A shell call with a unique id. */
export function shell(command: string) {
  return { id: `call_${newId('use')}`, name: 'shell', json: JSON.stringify({ command }) };
}

/** The answer that a client received: its text and the calls that the client would execute. */
export interface Seen {
  readonly text: string;
  readonly calls: readonly { readonly id: string; readonly command: string }[];
}

const PARAMETERS = {
  type: 'object' as const,
  properties: { command: { type: 'string' } },
  required: ['command'],
};
const PROMPT = 'Clean up.';

/** Makes a request in one dialect with an unmodified SDK, and returns the answer as the SDK parses it. */
export type Ask = (run: ExternalRun, prompt?: string) => Promise<Seen>;

export const askChat: Ask = async ({ openai }, prompt = PROMPT) =>
  seenChat(await openai.chat.completions.create({ ...chatRequest(prompt), stream: false }));

export const streamChat: Ask = async ({ openai }, prompt = PROMPT) =>
  seenChat(await openai.chat.completions.stream(chatRequest(prompt)).finalChatCompletion());

const askMessages: Ask = async ({ anthropic }, prompt = PROMPT) =>
  seenMessage(await anthropic.messages.create({ ...messageRequest(prompt), stream: false }));

export const streamMessages: Ask = async ({ anthropic }, prompt = PROMPT) =>
  seenMessage(await anthropic.messages.stream(messageRequest(prompt)).finalMessage());

const askResponses: Ask = async ({ openai }, prompt = PROMPT) =>
  seenResponse(await openai.responses.create({ ...responseRequest(prompt), stream: false }));

const streamResponses: Ask = async ({ openai }, prompt = PROMPT) =>
  seenResponse(await openai.responses.stream(responseRequest(prompt)).finalResponse());

/** A stream whose answers the provider does not store, as Codex asks for. */
const streamUnstored: Ask = async ({ openai }, prompt = PROMPT) => {
  const request = { ...responseRequest(prompt), store: false };
  return seenResponse(await openai.responses.stream(request).finalResponse());
};

/** Every dialect, streamed and not. */
export const ASKS: readonly (readonly [name: string, ask: Ask])[] = [
  ['chat completions', askChat],
  ['streamed chat completions', streamChat],
  ['messages', askMessages],
  ['streamed messages', streamMessages],
  ['responses', askResponses],
  ['streamed responses', streamResponses],
  ['streamed responses that are not stored', streamUnstored],
];

/** A request of the Chat Completions API that offers the tool `shell`. */
export function chatRequest(content: string) {
  const tool = { name: 'shell', parameters: PARAMETERS };
  return {
    model: ALIAS,
    messages: [{ role: 'user' as const, content }],
    tools: [{ type: 'function' as const, function: tool }],
  };
}

/** A request of the Messages API that offers the tool `shell`. */
export function messageRequest(content: string) {
  return {
    model: CLAUDE,
    max_tokens: 100,
    messages: [{ role: 'user' as const, content }],
    tools: [{ name: 'shell', input_schema: PARAMETERS }],
  };
}

/** A request of the Responses API that offers the tool `shell`. */
export function responseRequest(input: string) {
  const tool = { type: 'function' as const, name: 'shell', parameters: PARAMETERS, strict: false };
  return { model: ALIAS, input, tools: [tool] };
}

function commandOf(json: string): string {
  return String((JSON.parse(json) as { readonly command?: unknown }).command);
}

interface ChatLike {
  readonly choices: readonly {
    readonly message: {
      readonly content: string | null;
      readonly tool_calls?: readonly object[] | undefined;
    };
  }[];
}

function seenChat({ choices }: ChatLike): Seen {
  const { content, tool_calls: calls = [] } = choices[0]?.message ?? { content: null };
  return {
    text: content ?? '',
    calls: (calls as { id: string; function: { arguments: string } }[]).map((call) => ({
      id: call.id,
      command: commandOf(call.function.arguments),
    })),
  };
}

function seenMessage({ content }: { readonly content: readonly object[] }): Seen {
  const blocks = content as { type: string; text?: string; id?: string; input?: object }[];
  return {
    text: blocks.map(({ text = '' }) => text).join(''),
    calls: blocks.flatMap(({ type, id = '', input }) =>
      type === 'tool_use' ? [{ id, command: commandOf(JSON.stringify(input)) }] : [],
    ),
  };
}

function seenResponse({
  output,
  output_text: text,
}: {
  readonly output: readonly object[];
  readonly output_text: string;
}): Seen {
  const items = output as { type: string; call_id?: string; arguments?: string }[];
  return {
    text,
    calls: items.flatMap(({ type, call_id: id = '', arguments: json = '' }) =>
      type === 'function_call' ? [{ id, command: commandOf(json) }] : [],
    ),
  };
}

/** The conversation that a request shows the model. */
export function historyOf(request: ModelRequest | undefined): string {
  const { messages, input } = request?.body ?? {};
  expect(messages ?? input).toBeDefined();
  return JSON.stringify(messages ?? input);
}
