import { isJsonObject, type JsonObject, type JsonValue } from '@writ/kernel';
import type { ChatTurn, LlmRequest, ToolUse } from '../domain/calls/model-call.ts';
import {
  DEFAULT_GUARDRAILS,
  FRESH_COUNTERS,
  type GuardrailCounters,
  type GuardrailLimits,
  type GuardrailObservation,
  type ObservedCall,
  observe,
} from '../domain/guardrails/guardrails.ts';
import type { AgentContext, AgentFactory, ModelAnswer } from '../runtime/agent.ts';
import { overrideContext } from './override-context.ts';

type Answer = Extract<ModelAnswer, { kind: 'answer' }>;

const CONTINUE: ChatTurn = {
  role: 'user',
  hidden: 'max_tokens_recovery',
  text: 'Your answer was cut off by its length limit. Continue where it stopped, and repeat nothing.',
};
/**
 * Used in JSON mode, because a provider in JSON mode starts a new object that cannot be joined to the truncated one.
 */
const WRITE_AGAIN: ChatTurn = {
  role: 'user',
  hidden: 'max_tokens_recovery',
  text: 'Your answer was cut off by its length limit. Write the whole JSON object again, shorter.',
};

/**
 * Wraps a factory, so that the guardrails of the manifest apply to every model call of its agents except summaries
 * (AG-6). Middleware wraps the guardrails, so that it receives complete answers. The counters of the guardrails depend
 * only on journaled answers, so that replays restore them, and are part of checkpoints.
 */
export function withGuardrails(factory: AgentFactory): AgentFactory {
  return (manifest, instance) => {
    const agent = factory(manifest, instance);
    const { id, kind } = agent;
    return { id, kind, run: (ctx, inbox) => agent.run(guarded(ctx), inbox) };
  };
}

/** State of an agent and of its guardrails in a checkpoint. */
interface GuardedState {
  readonly guardrails: GuardrailCounters;
  readonly agent: object;
}

/** Returns a context with its own guardrails; each branch has separate guardrails. */
function guarded(inner: AgentContext): AgentContext {
  const guard = new Guard(inner);
  return overrideContext(inner, {
    llm: (request) => guard.ask(request),
    all: (branches) => inner.all(branches.map((branch) => (ctx) => branch(guarded(ctx)))),
    async restore() {
      const restored = await inner.restore();
      if (restored === undefined) return undefined;
      const { guardrails, agent } = restored.state as GuardedState;
      guard.counters = guardrails;
      return { ...restored, state: agent };
    },
    checkpoint({ state, ...items }) {
      const both: GuardedState = { guardrails: guard.counters, agent: state };
      inner.checkpoint({ ...items, state: both });
    },
  });
}

/** Calls the model and observes its answers. */
class Guard {
  counters: GuardrailCounters = FRESH_COUNTERS;
  readonly #ctx: AgentContext;
  readonly #limits: GuardrailLimits;

  constructor(ctx: AgentContext) {
    const { maxTokensRecoveries, maxRepeatedToolSteps } = ctx.manifest.guardrails;
    this.#ctx = ctx;
    this.#limits = {
      maxTokensRecoveries: maxTokensRecoveries ?? DEFAULT_GUARDRAILS.maxTokensRecoveries,
      maxRepeatedToolSteps: maxRepeatedToolSteps ?? DEFAULT_GUARDRAILS.maxRepeatedToolSteps,
    };
  }

  /**
   * Returns the model's answer. If the token limit truncated it, requests the rest and joins the parts, or, in JSON
   * mode, requests the whole answer again. Stops the agent when the model requests the same tool calls too often.
   */
  async ask(request: LlmRequest): Promise<ModelAnswer> {
    if (request.purpose === 'summary') return await this.#ctx.llm(request);
    let { messages } = request;
    for (let before = ''; ; ) {
      const answer = await this.#ctx.llm({ ...request, messages });
      if (answer.kind !== 'answer') return answer;
      this.#trips({ kind: 'budget', near: answer.nearBudget });
      const whole = request.json ? answer : { ...answer, text: before + answer.text };
      const isCut = answer.endReason === 'max_tokens' && answer.toolUses === undefined;
      if (!isCut || !this.#trips({ kind: 'truncated' })) return this.#checkRepeats(whole);
      before = whole.text;
      const { text } = answer;
      messages = [...messages, { role: 'assistant', text }, request.json ? WRITE_AGAIN : CONTINUE];
    }
  }

  #checkRepeats(answer: Answer): Answer {
    const calls = callsIn(answer, this.#ctx.manifest.kind === 'json-action');
    if (calls.length === 0 || !this.#trips({ kind: 'tool_step', calls })) return answer;
    const tools = Array.from(new Set(calls.map(({ tool }) => tool))).join(', ');
    const times = this.counters.repeatedToolSteps + 1;
    const limit = `max_repeated_tool_steps (${this.#limits.maxRepeatedToolSteps})`;
    return this.#ctx.stop({
      stopReason: 'stuck',
      phase: 'worker',
      callId: answer.callId,
      detail: `The model requested the same tool calls (${tools}) ${times} times in a row, which exceeds ${limit}.`,
    });
  }

  #trips(observation: GuardrailObservation): boolean {
    const { counters, tripped } = observe(this.#limits, this.counters, observation);
    this.counters = counters;
    if (tripped !== undefined) this.#ctx.trip(tripped);
    return tripped !== undefined;
  }
}

/** Returns the tool calls that an answer requests, natively or as a JSON action (SV-2). */
function callsIn({ text, toolUses = [] }: Answer, isJsonAction: boolean): readonly ObservedCall[] {
  if (!isJsonAction) return toolUses.map(callOf);
  const { kind, name, args } = objectIn(text) ?? {};
  if (kind !== 'tool' || typeof name !== 'string') return [];
  return [{ tool: name, args: isJsonObject(args) ? args : {} }];
}

/**
 * Converts a tool call for the comparison with earlier calls. Arguments that are not a JSON object are compared as
 * text.
 */
function callOf({ tool, argumentsJson }: ToolUse): ObservedCall {
  return { tool, args: objectIn(argumentsJson) ?? { text: argumentsJson } };
}

function objectIn(text: string): JsonObject | undefined {
  try {
    const value = JSON.parse(text) as JsonValue;
    return isJsonObject(value) ? value : undefined;
  } catch {
    return undefined;
  }
}
