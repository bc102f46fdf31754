import { durationMs } from '@bufbuild/protobuf/wkt';
import {
  type HistorySettings as HistoryMessage,
  AgentKind as KindMessage,
  type AgentLimits as LimitsMessage,
  type AgentManifest as ManifestMessage,
  type MiddlewareSetting as MiddlewareMessage,
  type ModelSettings as ModelMessage,
  PreemptionHandling as PreemptionMessage,
  RefusalHandling as RefusalMessage,
  type ContextStrategy as StrategyMessage,
  type SubAgent as SubAgentMessage,
} from '@writ/contracts/writ/supervision/v1/manifest_pb';
import { weightOf } from '@writ/identity';
import {
  InvalidRequestError,
  isJsonObject,
  type JsonObject,
  parseJsonStrict,
  priorityName,
} from '@writ/kernel';
import type {
  AgentKind,
  AgentLimits,
  AgentManifest,
  MiddlewareSetting,
  ModelSettings,
  SubAgent,
} from '../domain/agent/manifest.ts';
import { retentionFrom } from './supervision.ts';

const KINDS: ReadonlyMap<KindMessage, AgentKind> = new Map([
  [KindMessage.REACT, 'react'],
  [KindMessage.JSON_ACTION, 'json-action'],
  [KindMessage.ORCHESTRATOR, 'orchestrator'],
  [KindMessage.USER_PROXY, 'user-proxy'],
  [KindMessage.INFORMATION, 'information'],
  [KindMessage.PERSONAL_FEED, 'personal-feed'],
  [KindMessage.FLOW, 'flow'],
  [KindMessage.CUSTOM, 'custom'],
]);

/** Kinds that need no model (AG-4). */
const MODEL_LESS: ReadonlySet<AgentKind> = new Set(['user-proxy', 'flow', 'custom']);
const NO_MODEL: ModelSettings = { model: '', alsoAllowed: [], jsonMode: false };

/**
 * Converts a manifest into the form that is stored with the agent.
 * @throws InvalidRequestError INVALID_MANIFEST naming the field
 */
export function manifestFrom(message: ManifestMessage): AgentManifest {
  const kind = KINDS.get(message.kind);
  if (kind === undefined) throw badManifest('kind', 'is required');
  if (message.model === undefined && !MODEL_LESS.has(kind)) {
    throw badManifest('model', 'is required');
  }
  const retention = retentionFrom(message.retention);
  const { guardrails, context } = message;
  return {
    name: message.name,
    definitionHash: message.definitionHash,
    kind,
    description: message.description,
    instructions: message.instructions,
    finalInstructions: message.finalInstructions,
    model: message.model === undefined ? NO_MODEL : modelFrom(message.model),
    tools: message.tools,
    limits: limitsFrom(message.limits),
    ...(retention !== undefined && { retention }),
    ...(message.onRefusal === RefusalMessage.STOP && { onRefusal: 'stop' }),
    ...(message.onRefusal === RefusalMessage.TELL_MODEL && { onRefusal: 'tell_model' }),
    ...(message.onPreempt === PreemptionMessage.PARTIAL && { onPreempt: 'partial' }),
    subAgents: message.subAgents.map(subAgentFrom),
    guardrails: defined({
      maxTokensRecoveries: guardrails?.maxTokensRecoveries,
      maxRepeatedToolSteps: guardrails?.maxRepeatedToolSteps,
      reserveTokens: asNumber(guardrails?.reserveTokens),
      reserveCostFraction: guardrails?.reserveCostFraction,
    }),
    context: {
      ...defined({ contextWindow: asNumber(context?.contextWindow) }),
      strategy: context?.strategy ?? '',
      options: objectFrom(context?.optionsJson ?? '', 'context.options_json'),
      ...strategiesFrom(context?.strategies ?? []),
    },
    ...historyFrom(message.history),
    agentMiddleware: middlewareFrom(message.agentMiddleware, 'agent_middleware'),
    chatMiddleware: middlewareFrom(message.chatMiddleware, 'chat_middleware'),
    functionMiddleware: middlewareFrom(message.functionMiddleware, 'function_middleware'),
    initialToolChoice: message.initialToolChoice,
    outputTopic: message.outputTopic,
    followTopics: message.followTopics,
    unreviewedDeltas: message.unreviewedDeltas,
    options: objectFrom(message.optionsJson, 'options_json'),
  };
}

function modelFrom({
  timeout,
  maxOutputTokens,
  temperature,
  ...model
}: ModelMessage): ModelSettings {
  return {
    model: model.model,
    alsoAllowed: model.alsoAllowed,
    jsonMode: model.jsonMode,
    ...defined({
      temperature,
      maxOutputTokens: asNumber(maxOutputTokens),
      timeoutMs: timeout && durationMs(timeout),
    }),
  };
}

function limitsFrom(limits: LimitsMessage | undefined): AgentLimits {
  const { maxSteps, maxToolCalls, maxIterations, maxRefusals, maxRetries } = limits ?? {};
  return defined({ maxSteps, maxToolCalls, maxIterations, maxRefusals, maxRetries });
}

function subAgentFrom({ name, description, askTimeout, priority }: SubAgentMessage): SubAgent {
  const weight = weightOf(priority);
  return {
    name,
    description,
    ...defined({
      askTimeoutMs: askTimeout && durationMs(askTimeout),
      priority: weight === undefined ? undefined : priorityName(weight),
    }),
  };
}

function middlewareFrom(settings: readonly MiddlewareMessage[], field: string) {
  return settings.map(
    ({ name, optionsJson }, index): MiddlewareSetting => ({
      name,
      options: objectFrom(optionsJson, `${field}[${index}].options_json`),
    }),
  );
}

function strategiesFrom(strategies: readonly StrategyMessage[]) {
  if (strategies.length === 0) return {};
  return {
    strategies: strategies.map(({ name, optionsJson }, index) => ({
      name,
      options: objectFrom(optionsJson, `context.strategies[${index}].options_json`),
    })),
  };
}

function historyFrom(settings: HistoryMessage | undefined) {
  if (settings === undefined) return {};
  const { provider, optionsJson } = settings;
  return { history: { provider, options: objectFrom(optionsJson, 'history.options_json') } };
}

function objectFrom(text: string, field: string): JsonObject {
  const value = text === '' ? {} : parseJsonStrict(text, { field: `manifest.${field}` });
  if (isJsonObject(value)) return value;
  throw badManifest(field, 'must be a JSON object');
}

function asNumber(value: bigint | undefined): number | undefined {
  return value === undefined ? undefined : Number(value);
}

type Defined<T> = { readonly [K in keyof T]?: NonNullable<T[K]> };

function defined<T extends object>(fields: T): Defined<T> {
  const present = Object.entries(fields).filter(([, value]) => value !== undefined);
  return Object.fromEntries(present) as Defined<T>;
}

function badManifest(field: string, rule: string): InvalidRequestError {
  return new InvalidRequestError('INVALID_MANIFEST', `manifest.${field} ${rule}.`, {
    field: `manifest.${field}`,
  });
}
