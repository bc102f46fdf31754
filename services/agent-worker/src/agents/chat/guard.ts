import { isJsonObject, type JsonObject, type JsonValue } from '@writ/kernel';
import type { AgentManifest } from '../../domain/agent/manifest.ts';
import type { ChatTurn, ToolUse } from '../../domain/calls/model-call.ts';
import {
  DEFAULT_GUARDRAILS,
  FRESH_COUNTERS,
  type Guardrail,
  type GuardrailCounters,
  type GuardrailObservation,
  observe,
} from '../../domain/guardrails/guardrails.ts';
import type { AgentContext, ModelAnswer } from '../../runtime/agent.ts';
import type { Stop } from '../../runtime/unwinding.ts';
import type { Memory } from './view.ts';

/** What the loop does with a model's answer. */
export type AnswerVerdict =
  /** Process the answer; `text` is the whole answer, including the parts before a truncation. */
  | { readonly kind: 'process'; readonly text: string }
  /** Call the model again, with this turn added. */
  | { readonly kind: 'ask_again'; readonly turn: ChatTurn }
  /** Stop the agent. */
  | { readonly kind: 'stop'; readonly stop: Stop };

/** Checks each answer of a model. */
export interface Guard {
  judge(ctx: AgentContext, answer: Extract<ModelAnswer, { kind: 'answer' }>): AnswerVerdict;
  readonly memory: Memory;
}

/** State of a guard between answers. */
interface GuardState {
  readonly counters: GuardrailCounters;
  /** The answer so far, when its token limit truncated it. */
  readonly cutOff: string;
}

const CONTINUE: ChatTurn = {
  role: 'user',
  hidden: 'max_tokens_recovery',
  text: 'Your answer was cut off by its length limit. Go on where it stopped, and repeat nothing.',
};

/**
 * Creates the guardrails of one agent run (AG-6). Their counters depend only on journaled answers,
 * so that replays restore them.
 */
export function createGuard({ guardrails }: Pick<AgentManifest, 'guardrails'>): Guard {
  const { maxTokensRecoveries, maxRepeatedToolSteps } = guardrails;
  const limits = {
    maxTokensRecoveries: maxTokensRecoveries ?? DEFAULT_GUARDRAILS.maxTokensRecoveries,
    maxRepeatedToolSteps: maxRepeatedToolSteps ?? DEFAULT_GUARDRAILS.maxRepeatedToolSteps,
  };
  let counters: GuardrailCounters = FRESH_COUNTERS;
  let cutOff = '';

  const judge: Guard['judge'] = (ctx, { text, toolUses = [], endReason, nearBudget, callId }) => {
    const trips = (observation: GuardrailObservation): Guardrail | undefined => {
      const outcome = observe(limits, counters, observation);
      counters = outcome.counters;
      if (outcome.tripped !== undefined) ctx.trip(outcome.tripped);
      return outcome.tripped;
    };
    trips({ kind: 'budget', near: nearBudget });
    if (toolUses.length > 0) {
      cutOff = '';
      const calls = toolUses.map(({ tool, argumentsJson }) => ({
        tool,
        args: argsOf(argumentsJson),
      }));
      if (trips({ kind: 'tool_step', calls }) === undefined) return { kind: 'process', text };
      return { kind: 'stop', stop: stuck(toolUses, callId, counters.repeatedToolSteps) };
    }
    const whole = cutOff + text;
    const isCut = endReason === 'max_tokens' && trips({ kind: 'truncated' }) !== undefined;
    cutOff = isCut ? whole : '';
    return isCut ? { kind: 'ask_again', turn: CONTINUE } : { kind: 'process', text: whole };
  };
  const memory: Memory = {
    save: (): GuardState => ({ counters, cutOff }),
    restore: (saved) => {
      ({ counters, cutOff } = saved as GuardState);
    },
  };
  return { judge, memory };
}

function stuck(uses: readonly ToolUse[], callId: string, times: number): Stop {
  const tools = Array.from(new Set(uses.map(({ tool }) => tool))).join(', ');
  const detail = `The model requested the same tool calls (${tools}) ${times + 1} times in a row, which exceeds max_repeated_tool_steps.`;
  return { stopReason: 'stuck', phase: 'worker', callId, detail };
}

function argsOf(argumentsJson: string): JsonObject {
  try {
    const args = JSON.parse(argumentsJson) as JsonValue;
    if (isJsonObject(args)) return args;
  } catch {
    // Arguments that are not JSON are compared as text.
  }
  return { text: argumentsJson };
}
