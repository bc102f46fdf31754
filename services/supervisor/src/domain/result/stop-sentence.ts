import { REASONS } from '@writ/kernel';
import { actionName, type RecordedAction } from './recorded-action.ts';

/** Sentences of stop reasons without a variable part. */
const SENTENCES: Readonly<Record<string, string>> = {
  success: '',
  nothing_done:
    'The answer was approved, but an action with an effect was refused and none took place.',
  paused: 'The agent lost its slot and returned a partial result.',
  cancelled: 'The run was cancelled.',
  closed: '',
  idle: 'The external agent made no request within idle_timeout.',
  max_seconds: 'The active time of the run reached max_seconds.',
  deadline: 'The deadline of the run passed.',
  halted: 'A halt ended the run.',
  max_steps: 'The agent proposed more steps than max_steps permits.',
  max_tool_calls: 'The run proposed more tool calls than max_tool_calls permits.',
  'budget_exhausted:tokens': 'The token budget (max_tokens) is exhausted.',
  'budget_exhausted:cost': 'The cost budget (max_cost_usd) is exhausted.',
  'budget_exhausted:turns': 'The budget of model calls (max_turns) is exhausted.',
  'budget_exhausted:spawns':
    'The pool of the run permits no other agent (max_agents, max_total_spawns or max_depth).',
  approval_expired: 'No person decided the approval before it expired.',
  withdrawn: 'The agent withdrew the action while it waited for a person.',
  llm_timeout: 'The model did not answer in time.',
  llm_empty: 'The model returned an empty answer.',
  stuck: 'The agent repeated the same tool calls.',
  'loop_detected:per_tool_limit': 'One tool was called more often than its limit permits.',
  'loop_detected:signature_repeat':
    'The same tool call was repeated more often than its limit permits.',
};

/** Sentences of stop reasons with a variable part after the colon. */
const FAMILIES: Readonly<Record<string, (part: string) => string>> = {
  tool_denied: (tool) =>
    `Tool ${tool} is not on the tool list of the agent, or the gateway denies it.`,
  tool_missing: (tool) => `The tool gateway has no tool ${tool}.`,
  tool_changed: (tool) => `The definition of tool ${tool} changed after its review.`,
  tool_bad_args: (tool) => `The arguments violate the schema of tool ${tool}.`,
  tool_bad_result: (tool) => `The result of tool ${tool} is not a JSON object.`,
  tool_error: (tool) => `Tool ${tool} failed.`,
  outcome_unknown: (tool) =>
    `The outcome of a call of tool ${tool} is unknown, and no person resolved it in time.`,
  invalid_action: (what) => `The text of the model is not a valid action: ${what}.`,
  provider_error: (what) => `The model provider failed: ${what}.`,
  error: (what) => meaningOf(what) ?? `The run failed: ${what}.`,
};

/**
 * Returns the sentence that explains a stop reason to people, for endings that no component has explained; empty for
 * `success` and `closed`. `action` is the action at which the run stopped.
 */
export function stopSentence(stopReason: string, action?: RecordedAction): string {
  const known = SENTENCES[stopReason];
  if (known !== undefined) return known;
  const name = action === undefined ? 'the action' : actionName(action);
  if (stopReason === 'human_rejected') return `A person rejected ${name}.`;
  const colon = stopReason.indexOf(':');
  const part = stopReason.slice(colon + 1);
  if (stopReason.startsWith('supervisor_block:')) return `Policy blocked ${name}: ${part}.`;
  return FAMILIES[stopReason.slice(0, colon)]?.(part) ?? `The run stopped: ${stopReason}.`;
}

/**
 * Returns the meaning of a reason code, which a stop reason contains in upper or lower case; undefined for an unknown
 * code.
 */
function meaningOf(reason: string): string | undefined {
  const code = reason.toUpperCase();
  return Object.hasOwn(REASONS, code) ? REASONS[code as keyof typeof REASONS].meaning : undefined;
}
