import {
  InvalidRequestError,
  isJsonObject,
  type JsonObject,
  type JsonValue,
  MIDDLEWARE_OPTIONS,
  type REDACTION_KINDS,
} from '@writ/kernel';
import type { ChatTurn } from '../../../domain/calls/model-call.ts';
import { observationOf, type ToolOutcome } from '../../../domain/calls/tool-call.ts';
import type { ModelAnswer, ProposalOutcome } from '../../../runtime/agent.ts';
import { optionsReader } from '../../options.ts';
import type { ChatContext, CreateMiddleware, FunctionContext } from '../middleware.ts';
import { redactEmails } from './redact-emails.ts';

interface RedactionOptions {
  readonly kinds: (keyof typeof KINDS)[];
  readonly patterns: string[];
}

type Redact = (text: string) => string;

const REDACTED = '[redacted]';

const KINDS = {
  email: (text) => redactEmails(text, REDACTED),
  card_number: redactMatches(/\b(?:\d[ -]?){12,18}\d\b/gu),
  phone: redactMatches(/(?<![\p{L}\p{N}])\+\d[\d ()/-]{6,}\d/gu),
} as const satisfies Record<(typeof REDACTION_KINDS)[number], Redact>;

const readOptions = optionsReader<RedactionOptions>('redaction', MIDDLEWARE_OPTIONS.chat.redaction);

/**
 * Redacts email addresses, card and phone numbers, and matches of `patterns`, in the model's input
 * and in the text of its answers, not in the arguments of their tool calls.
 */
export const redactChat: CreateMiddleware<ChatContext, ModelAnswer> = (options) => {
  const redact = redactor(options);
  return {
    process: async (context, next) => {
      const messages = context.request.messages.map((turn) => redactTurn(turn, redact));
      const answer = await next({ ...context, request: { ...context.request, messages } });
      return answer.kind === 'answer'
        ? { ...answer, text: redactText(answer.text, redact) }
        : answer;
    },
  };
};

/**
 * Redacts the tool results and tool errors that the agent and its model see; the gateway's record
 * stays complete.
 */
export const redactFunction: CreateMiddleware<FunctionContext, ProposalOutcome> = (options) => {
  const redact = redactor(options);
  return {
    process: async (context, next) => {
      const outcome = await next(context);
      if (outcome.kind !== 'executed' && outcome.kind !== 'failed') return outcome;
      const result = redactResult(outcome.result, redact);
      if (outcome.kind === 'executed') {
        return { ...outcome, result, observation: observationOf(result) };
      }
      const { detail = '' } = outcome.stop;
      return { ...outcome, result, stop: { ...outcome.stop, detail: redact(detail) } };
    },
  };
};

function redactResult(result: ToolOutcome, redact: Redact): ToolOutcome {
  const { content, contentKind, message } = result;
  const isText = content !== undefined && contentKind !== 'image';
  return {
    ...result,
    message: redact(message),
    ...(isText && { content: redactText(content, redact) }),
  };
}

function redactTurn(turn: ChatTurn, redact: Redact): ChatTurn {
  if (turn.role === 'tool') {
    const results = turn.results.map((each) => ({ ...each, text: redactText(each.text, redact) }));
    return { ...turn, results };
  }
  const text = redactText(turn.text, redact);
  if (turn.role !== 'assistant' || turn.toolUses === undefined) return { ...turn, text };
  const toolUses = turn.toolUses.map((use) => ({
    ...use,
    argumentsJson: redactText(use.argumentsJson, redact),
  }));
  return { ...turn, text, toolUses };
}

/** Redacts a text. In JSON text, redacts only inside values and names, so that it stays valid JSON. */
function redactText(text: string, redact: Redact): string {
  const value = structureIn(text);
  if (value === undefined) return redact(text);
  const redacted = JSON.stringify(redactValue(value, redact));
  return redacted === JSON.stringify(value) ? text : redacted;
}

/** Returns the object or list that a text contains; undefined for any other text. */
function structureIn(text: string): JsonValue | undefined {
  try {
    const value = JSON.parse(text) as JsonValue;
    return typeof value === 'object' && value !== null ? value : undefined;
  } catch {
    return undefined;
  }
}

function redactValue(value: JsonValue, redact: Redact): JsonValue {
  if (typeof value === 'string') return redact(value);
  if (typeof value === 'number') {
    const shown = redact(String(value));
    return shown === String(value) ? value : shown;
  }
  if (Array.isArray(value)) return value.map((each: JsonValue) => redactValue(each, redact));
  if (!isJsonObject(value)) return value;
  const entries: [string, JsonValue][] = [];
  const names = new Set<string>();
  const numbers = new Map<string, number>();
  for (const [name, each] of Object.entries(value)) {
    const redacted = redact(name);
    let shown = redacted;
    let number = numbers.get(redacted) ?? 1;
    while (names.has(shown)) {
      number += 1;
      shown = `${redacted} ${number}`;
    }
    numbers.set(redacted, number);
    names.add(shown);
    entries.push([shown, redactValue(each, redact)]);
  }
  return Object.fromEntries(entries);
}

function redactor(options: JsonObject): Redact {
  const { kinds, patterns } = readOptions(options);
  const all = [
    ...kinds.map((kind) => KINDS[kind]),
    ...patterns.map((pattern) => redactMatches(compile(pattern))),
  ];
  return (text) => all.reduce((rest, redact) => redact(rest), text);
}

function redactMatches(pattern: RegExp): Redact {
  return (text) => text.replace(pattern, REDACTED);
}

function compile(pattern: string): RegExp {
  try {
    return new RegExp(pattern, 'gu');
  } catch (error) {
    throw new InvalidRequestError(
      'INVALID_MIDDLEWARE_OPTIONS',
      `options of redaction: patterns must be regular expressions: ${String(error)}.`,
      { field: 'redaction' },
    );
  }
}
