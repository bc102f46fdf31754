import { InvalidRequestError } from '@writ/kernel';
import type { ChatTurn } from '../../../domain/calls/model-call.ts';
import type { ModelAnswer, ProposalOutcome } from '../../../runtime/agent.ts';
import { optionsReader } from '../../options.ts';
import type { ChatContext, CreateMiddleware, FunctionContext } from '../middleware.ts';

interface RedactionOptions {
  readonly kinds: (keyof typeof KINDS)[];
  readonly patterns: string[];
}

const KINDS = {
  email: /[\p{L}\p{N}._%+-]+@[\p{L}\p{N}-]+(?:\.[\p{L}\p{N}-]+)+/gu,
  card_number: /\b(?:\d[ -]?){12,18}\d\b/gu,
  phone: /(?<![\p{L}\p{N}])\+\d[\d ()/-]{6,}\d/gu,
};

const readOptions = optionsReader<RedactionOptions>('redaction', {
  kinds: { type: 'array', items: { enum: Object.keys(KINDS) }, default: Object.keys(KINDS) },
  patterns: { type: 'array', items: { type: 'string', minLength: 1 }, default: [] },
});

/**
 * Redacts email addresses, card and phone numbers, and matches of `patterns`, in the model's input
 * and output.
 */
export const redactChat: CreateMiddleware<ChatContext, ModelAnswer> = (options) => {
  const redact = redactor(options);
  return {
    process: async (context, next) => {
      const messages = context.request.messages.map((turn) => redactTurn(turn, redact));
      const answer = await next({ ...context, request: { ...context.request, messages } });
      return answer.kind === 'answer' ? { ...answer, text: redact(answer.text) } : answer;
    },
  };
};

/** Redacts the tool results that the agent sees; the gateway's record stays complete. */
export const redactFunction: CreateMiddleware<FunctionContext, ProposalOutcome> = (options) => {
  const redact = redactor(options);
  return {
    process: async (context, next) => {
      const outcome = await next(context);
      if (outcome.kind !== 'executed') return outcome;
      const text = JSON.stringify(outcome.observation, (_, value: unknown) =>
        typeof value === 'string' ? redact(value) : value,
      );
      return { ...outcome, observation: JSON.parse(text) };
    },
  };
};

function redactTurn(turn: ChatTurn, redact: (text: string) => string): ChatTurn {
  if (turn.role !== 'tool') return { ...turn, text: redact(turn.text) };
  return { ...turn, results: turn.results.map((each) => ({ ...each, text: redact(each.text) })) };
}

function redactor(options: Parameters<typeof readOptions>[0]): (text: string) => string {
  const { kinds, patterns } = readOptions(options);
  const all = [...kinds.map((kind) => KINDS[kind]), ...patterns.map(compile)];
  return (text) => all.reduce((rest, pattern) => rest.replace(pattern, '[redacted]'), text);
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
