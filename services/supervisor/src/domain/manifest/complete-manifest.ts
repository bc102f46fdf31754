import {
  createExecutionBudget,
  createSpawnBudget,
  type ExecutionBudget,
  HistoryRetention,
  InvalidRequestError,
  omitUndefined,
  type PriorityName,
  parseUsd,
} from '@writ/kernel';
import type { AgentDefinition } from './agent-definition.ts';
import type { AgentManifest, ModelSettings } from './agent-manifest.ts';
import { APPLICABLE_KINDS } from './applicable-settings.ts';
import { withDefinitionHash } from './manifest-json.ts';

const ASK_TIMEOUT_MS = 120_000;
const DEFAULT_LIMITS = { maxRefusals: 3, maxRetries: 3 };
/** Further defaults of the json-action loop; the steps and tool calls of the other kinds are unlimited by default. */
const JSON_ACTION_LIMITS = { maxSteps: 8, maxToolCalls: 5 };

/**
 * Returns the manifest of a definition, with its hash and the defaults that depend on its kind (AG-1, AG-10).
 * @throws InvalidRequestError INVALID_BUDGET, INVALID_AMOUNT, DELTAS_BYPASS_REDACTION, MODEL_REQUIRED naming the field
 */
export function completeManifest(definition: AgentDefinition): AgentManifest {
  assertDeltas(definition);
  const { budget, spawn, middleware = {}, sessionBudget, ...rest } = definition;
  const isJsonAction = rest.kind === 'json-action';
  return withDefinitionHash({
    ...rest,
    model: modelOf(definition),
    limits: { ...DEFAULT_LIMITS, ...(isJsonAction && JSON_ACTION_LIMITS), ...rest.limits },
    executionBudget: budgetOf(budget, 'budget'),
    ...(sessionBudget && { sessionBudget: budgetOf(sessionBudget, 'session_budget') }),
    spawnBudget: createSpawnBudget(spawn),
    priority: priorityOf(rest.priority),
    retention: rest.retention ?? HistoryRetention.PERMANENT,
    onRefusal: rest.onRefusal ?? (isJsonAction ? 'stop' : 'tell_model'),
    onPreempt: rest.onPreempt ?? 'park',
    subAgents: rest.subAgents.map(({ priority, ...agent }) => ({
      description: '',
      askTimeoutMs: ASK_TIMEOUT_MS,
      ...agent,
      ...omitUndefined({ priority: priority && priorityOf(priority) }),
    })),
    guardrails: rest.guardrails ?? {},
    context: { strategy: '', ...rest.context },
    agentMiddleware: middleware.agent ?? [],
    chatMiddleware: middleware.chat ?? [],
    functionMiddleware: middleware.function ?? [],
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
  const jsonMode = kind === 'json-action';
  return { model: '', alsoAllowed: [], temperature: 0, jsonMode, ...model };
}

/** Rejects deltas together with redaction: deltas are sent before the text is redacted. */
function assertDeltas({ unreviewedDeltas, middleware }: AgentDefinition): void {
  if (!unreviewedDeltas || !middleware?.chat?.some(({ name }) => name === 'redaction')) return;
  throw new InvalidRequestError(
    'DELTAS_BYPASS_REDACTION',
    'unreviewed_deltas must not be true together with the chat middleware redaction, because deltas bypass it.',
    { field: 'unreviewed_deltas' },
  );
}

function budgetOf(budget: AgentDefinition['budget'] = {}, path: string): ExecutionBudget {
  const { maxCostUsd: cost, maxSeconds: seconds, ...rest } = budget;
  return createExecutionBudget(
    {
      ...rest,
      maxCostNanoUsd:
        cost === undefined ? undefined : parseUsd(String(cost), `${path}.max_cost_usd`),
      maxActiveMs: seconds === undefined ? undefined : Math.round(seconds * 1000),
    },
    path,
  );
}

function priorityOf(name: Lowercase<PriorityName> = 'normal'): PriorityName {
  return name.toUpperCase() as PriorityName;
}
