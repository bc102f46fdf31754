import {
  isStopReason,
  type MiddlewareContext,
  type MiddlewareDefinition,
  type ToolAnswer,
} from '@writ/kernel';
import type { Decision } from '../../domain/calls/decision.ts';
import { observationOf, type ToolOutcome } from '../../domain/calls/tool-call.ts';
import type { ProposalOutcome } from '../../runtime/agent.ts';
import { optionsReader } from '../options.ts';
import { BUILT_IN_MIDDLEWARE } from './built-in-middleware.ts';
import type { AgentRunContext, FunctionContext, MiddlewareRegistry } from './middleware.ts';

/** Returns the built-in middleware together with that of the worker's modules (AG-9). */
export function middlewareRegistry(
  definitions: ReadonlyMap<string, MiddlewareDefinition>,
): MiddlewareRegistry {
  const registry = {
    agent: { ...BUILT_IN_MIDDLEWARE.agent },
    chat: { ...BUILT_IN_MIDDLEWARE.chat },
    function: { ...BUILT_IN_MIDDLEWARE.function },
  };
  for (const [name, definition] of definitions) {
    const read = optionsReader<never>(name, definition.options ?? { properties: {} });
    if (definition.agent !== undefined) {
      const create = definition.agent.bind(definition);
      registry.agent[name] = (options) => {
        const middleware = create(read(options));
        return {
          process: (context, next) =>
            middleware.process(publicContext(context), () => next(context)),
        };
      };
    }
    if (definition.chat !== undefined) {
      const create = definition.chat.bind(definition);
      registry.chat[name] = (options) => {
        const middleware = create(read(options));
        return {
          process: (context, next) => {
            const { systemInstructions, request } = context;
            const shown = { ...publicContext(context), systemInstructions, request };
            return middleware.process(shown, (given) =>
              next({ ...context, request: given.request }),
            );
          },
        };
      };
    }
    if (definition.function !== undefined) {
      const create = definition.function.bind(definition);
      registry.function[name] = (options) => {
        const middleware = create(read(options));
        return { process: (context, next) => processCall(middleware, context, next) };
      };
    }
  }
  return registry;
}

function publicContext({ ctx, runId, sessionId, agentName }: AgentRunContext): MiddlewareContext {
  const { tenantId = '', agent } = ctx.meta;
  return {
    tenant: tenantId,
    runId,
    sessionId,
    agent: { name: agentName, instance: agent?.instance ?? '' },
    operations: {
      check: () => ctx.check(),
      now: () => ctx.now(),
      random: () => ctx.random(),
      log: (message, fields, content) => ctx.log(message, fields, content),
      sleep: (ms) => ctx.sleep(ms),
    },
  };
}

type CallMiddleware = ReturnType<NonNullable<MiddlewareDefinition['function']>>;

/**
 * Passes the outcome of a call to the middleware as a {@link ToolAnswer}, and converts the answer that the middleware
 * returns into the outcome of the call.
 */
async function processCall(
  middleware: CallMiddleware,
  context: FunctionContext,
  next: (context: FunctionContext) => Promise<ProposalOutcome>,
): Promise<ProposalOutcome> {
  const { functionName, arguments: given } = context;
  const seen = new Map<ToolAnswer, ProposalOutcome>();
  let latest: ProposalOutcome | undefined;
  const shown = { ...publicContext(context), functionName, arguments: given };
  const answer = await middleware.process(shown, async (changed) => {
    const call = { functionName: changed.functionName, arguments: changed.arguments };
    latest = await next({ ...context, ...call });
    const one = answerOf(latest);
    seen.set(one, latest);
    return one;
  });
  return (
    seen.get(answer) ??
    stillRefused(answer, latest) ??
    outcomeOf(answer, latest ?? unproposed(context), functionName)
  );
}

/**
 * Returns the refusal of a call with the message of the middleware; undefined when the call was not refused, or when
 * the middleware answers with a result. The outcome is still a refusal, so that `on_refusal` and `max_refusals` apply
 * (AG-10).
 */
function stillRefused(
  answer: ToolAnswer,
  latest: ProposalOutcome | undefined,
): ProposalOutcome | undefined {
  if (answer.ok) return undefined;
  const { message } = answer;
  if (latest?.kind === 'refused') {
    return { ...latest, decision: { ...latest.decision, reason: message } };
  }
  // An error of the tool is not a refusal; the middleware may replace the error.
  if (latest?.kind !== 'failed' || latest.result.status === 'error') return undefined;
  return { ...latest, result: { ...latest.result, message } };
}

function answerOf(outcome: ProposalOutcome): ToolAnswer {
  switch (outcome.kind) {
    case 'executed':
      return { ok: true, result: outcome.observation };
    case 'refused':
      return { ok: false, error: outcome.stop.stopReason, message: outcome.decision.reason };
    case 'failed':
      return { ok: false, error: outcome.stop.stopReason, message: outcome.result.message };
    case 'finished':
      return { ok: false, error: 'error:not_a_tool', message: 'The proposal is not a tool call.' };
  }
}

/** Returns `outcome` with the answer of a middleware in place of its own. */
function outcomeOf(
  answer: ToolAnswer,
  { callId, decision, ...outcome }: Pick<ProposalOutcome, 'callId' | 'decision'>,
  tool: string,
): ProposalOutcome {
  const receipt = 'result' in outcome ? (outcome.result as ToolOutcome).receipt : '';
  if (answer.ok) {
    const content = JSON.stringify(answer.result);
    const status = { status: 'ok', stopReason: '', message: '' } as const;
    const result = { ...status, content, contentKind: 'json', receipt } as const;
    return { kind: 'executed', callId, decision, result, observation: observationOf(result) };
  }
  const { error, message } = answer;
  const stopReason = isStopReason(error) ? error : `tool_error:${tool}`;
  const result = { status: 'error', stopReason, message, contentKind: 'none', receipt } as const;
  const stop = { stopReason, phase: 'execution', callId, detail: message } as const;
  return { kind: 'failed', callId, decision, result, stop };
}

/** The decision on a call that a middleware answered without proposing it. */
function unproposed({ functionName: tool, arguments: argumentsJson }: FunctionContext) {
  const decision: Decision = {
    decisionId: '',
    callId: '',
    verdict: 'approve',
    reason: 'answered_by_middleware',
    action: { kind: 'tool', tool, argumentsJson },
    approvalId: '',
    settled: true,
    stopReason: '',
    runEnded: false,
  };
  return { callId: '', decision };
}
