import {
  createExecutionBudget,
  createSpawnBudget,
  type ExecutionBudget,
  HistoryRetention,
  InvalidRequestError,
  type PriorityName,
  parseUsd,
} from '@writ/kernel';
import type { AgentDefinition } from './agent-definition.ts';
import type { AgentLimits, AgentManifest, ModelSettings } from './agent-manifest.ts';
import { APPLICABLE_KINDS, assertApplicable, type Extensions } from './applicable-settings.ts';
import { withDefinitionHash } from './manifest-json.ts';

const ASK_TIMEOUT_MS = 120_000;
const DEFAULT_LIMITS = { maxRefusals: 3, maxRetries: 3 };
/** Defaults of the json-action loop; the other kinds are limited only by their budgets. */
const JSON_ACTION_LIMITS = { maxSteps: 8, maxToolCalls: 5 };

/**
 * The manifest of a definition, with all defaults and its hash (AG-1, AG-10).
 * @throws InvalidRequestError INVALID_BUDGET, INVALID_AMOUNT, DELTAS_BYPASS_REDACTION, MODEL_REQUIRED,
 *   MODEL_NOT_APPLICABLE, SETTING_NOT_APPLICABLE, UNKNOWN_MIDDLEWARE, INVALID_MANIFEST naming the field
 */
export function manifestOf(
  definition: AgentDefinition,
  extensions: Extensions = {},
): AgentManifest {
  assertApplicable(definition, extensions);
  const { kind, guardrails = {}, context = {}, middleware = {} } = definition;
  assertDeltas(definition);
  return withDefinitionHash({
    name: definition.name,
    kind,
    description: definition.description ?? '',
    instructions: definition.instructions ?? '',
    finalInstructions: definition.final_instructions ?? '',
    model: modelOf(definition),
    tools: definition.tools ?? [],
    limits: limitsOf(definition),
    executionBudget: budgetOf(definition.budget, 'budget'),
    ...(definition.session_budget && {
      sessionBudget: budgetOf(definition.session_budget, 'session_budget'),
    }),
    spawnBudget: createSpawnBudget({
      maxAgents: definition.spawn?.max_agents,
      allowPreempt: definition.spawn?.allow_preempt,
      maxTotalSpawns: definition.spawn?.max_total_spawns,
      maxDepth: definition.spawn?.max_depth,
    }),
    priority: priorityOf(definition.priority),
    retention: definition.retention ?? HistoryRetention.PERMANENT,
    onRefusal: definition.on_refusal ?? (kind === 'json-action' ? 'stop' : 'tell_model'),
    onPreempt: definition.on_preempt ?? 'park',
    ...optional('approvalRequiredRisk', definition.approval_required_risk),
    subAgents: (definition.sub_agents ?? []).map((agent) => ({
      name: agent.name,
      description: agent.description ?? '',
      askTimeoutMs: agent.ask_timeout ?? ASK_TIMEOUT_MS,
      ...(agent.priority !== undefined && { priority: priorityOf(agent.priority) }),
    })),
    guardrails: {
      ...optional('maxTokensRecoveries', guardrails.max_tokens_recoveries),
      ...optional('maxRepeatedToolSteps', guardrails.max_repeated_tool_steps),
      ...optional('reserveTokens', guardrails.reserve_tokens),
      ...optional('reserveCostFraction', guardrails.reserve_cost_fraction),
    },
    context: {
      strategy: context.strategy ?? '',
      ...optional('contextWindow', context.context_window),
      ...optional('options', context.options),
      ...optional('strategies', context.strategies),
    },
    ...optional('history', definition.history),
    agentMiddleware: middleware.agent ?? [],
    chatMiddleware: middleware.chat ?? [],
    functionMiddleware: middleware.function ?? [],
    initialToolChoice: definition.initial_tool_choice ?? '',
    outputTopic: definition.output_topic ?? '',
    followTopics: definition.follow_topics ?? [],
    unreviewedDeltas: definition.unreviewed_deltas ?? false,
    ...optional('options', definition.options),
  });
}

function modelOf({ kind, model }: AgentDefinition): ModelSettings {
  const needsModel = APPLICABLE_KINDS.model?.includes(kind) === true && kind !== 'custom';
  if (model === undefined && needsModel) {
    throw new InvalidRequestError(
      'MODEL_REQUIRED',
      `model is required for agents of kind ${kind}.`,
      { field: 'model' },
    );
  }
  return {
    model: model?.model ?? '',
    alsoAllowed: model?.also_allowed ?? [],
    temperature: model?.temperature ?? 0,
    jsonMode: model?.json_mode ?? kind === 'json-action',
    ...optional('maxOutputTokens', model?.max_output_tokens),
    ...optional('timeoutMs', model?.timeout),
  };
}

/** Redacted text must not be visible before the redaction. */
function assertDeltas({ unreviewed_deltas: shown = false, middleware }: AgentDefinition): void {
  if (!shown || !middleware?.chat?.some(({ name }) => name === 'redaction')) return;
  throw new InvalidRequestError(
    'DELTAS_BYPASS_REDACTION',
    'unreviewed_deltas must not be true together with the chat middleware redaction, because deltas bypass it.',
    { field: 'unreviewed_deltas' },
  );
}

function limitsOf({ kind, limits = {} }: AgentDefinition): AgentLimits {
  return {
    ...DEFAULT_LIMITS,
    ...(kind === 'json-action' && JSON_ACTION_LIMITS),
    ...optional('maxSteps', limits.max_steps),
    ...optional('maxToolCalls', limits.max_tool_calls),
    ...optional('maxIterations', limits.max_iterations),
    ...optional('maxRefusals', limits.max_refusals),
    ...optional('maxRetries', limits.max_retries),
  };
}

function budgetOf(budget: AgentDefinition['budget'] = {}, path: string): ExecutionBudget {
  const { max_cost_usd: cost, max_seconds: seconds } = budget;
  return createExecutionBudget(
    {
      maxTokens: budget.max_tokens,
      maxCostNanoUsd:
        cost === undefined ? undefined : parseUsd(String(cost), `${path}.max_cost_usd`),
      maxTurns: budget.max_turns,
      deadlineMs: budget.deadline,
      maxActiveMs: seconds === undefined ? undefined : Math.round(seconds * 1000),
    },
    path,
  );
}

function priorityOf(name: Lowercase<PriorityName> = 'normal'): PriorityName {
  return name.toUpperCase() as PriorityName;
}

/** The field if it has a value. An unset limit means unlimited, so it must stay unset. */
function optional<K extends string, V>(key: K, value: V | undefined): { readonly [P in K]?: V } {
  return (value === undefined ? {} : { [key]: value }) as { readonly [P in K]?: V };
}
