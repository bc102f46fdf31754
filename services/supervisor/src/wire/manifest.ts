import type { MessageInitShape } from '@bufbuild/protobuf';
import { durationFromMs } from '@bufbuild/protobuf/wkt';
import {
  type AgentManifestSchema,
  AgentKind as KindMessage,
  PreemptionHandling as PreemptionMessage,
  RefusalHandling as RefusalMessage,
} from '@writ/contracts/writ/supervision/v1/manifest_pb';
import type { JsonObject } from '@writ/kernel';
import type {
  AgentKind,
  AgentManifest,
  HistorySettings,
  MiddlewareSetting,
  ModelSettings,
} from '../domain/manifest/agent-manifest.ts';
import { budgetMessage, spawnBudgetMessage } from './budget.ts';
import { priorityMessage, retentionMessage } from './supervision.ts';

const KINDS: Readonly<Record<AgentKind, KindMessage>> = {
  react: KindMessage.REACT,
  'json-action': KindMessage.JSON_ACTION,
  orchestrator: KindMessage.ORCHESTRATOR,
  'user-proxy': KindMessage.USER_PROXY,
  information: KindMessage.INFORMATION,
  'personal-feed': KindMessage.PERSONAL_FEED,
  flow: KindMessage.FLOW,
  custom: KindMessage.CUSTOM,
};

/** Converts a manifest. */
export function manifestMessage(
  manifest: AgentManifest,
): MessageInitShape<typeof AgentManifestSchema> {
  const { model, limits, context } = manifest;
  const { reserveTokens, ...guardrails } = manifest.guardrails;
  const { contextWindow } = context;
  return {
    name: manifest.name,
    definitionHash: manifest.definitionHash,
    kind: KINDS[manifest.kind],
    description: manifest.description,
    instructions: manifest.instructions,
    finalInstructions: manifest.finalInstructions,
    ...(model.model !== '' && { model: modelMessage(model) }),
    tools: [...manifest.tools],
    limits: { ...limits },
    executionBudget: budgetMessage(manifest.executionBudget),
    spawnBudget: spawnBudgetMessage(manifest.spawnBudget),
    priority: priorityMessage(manifest.priority),
    retention: retentionMessage(manifest.retention),
    onRefusal: manifest.onRefusal === 'stop' ? RefusalMessage.STOP : RefusalMessage.TELL_MODEL,
    onPreempt:
      manifest.onPreempt === 'partial' ? PreemptionMessage.PARTIAL : PreemptionMessage.PARK,
    ...(manifest.approvalRequiredRisk !== undefined && {
      approvalRequiredRisk: manifest.approvalRequiredRisk,
    }),
    subAgents: manifest.subAgents.map((agent) => ({
      name: agent.name,
      description: agent.description,
      askTimeout: durationFromMs(agent.askTimeoutMs),
      ...(agent.priority !== undefined && { priority: priorityMessage(agent.priority) }),
    })),
    guardrails: {
      ...guardrails,
      ...(reserveTokens !== undefined && { reserveTokens: BigInt(reserveTokens) }),
    },
    context: {
      strategy: context.strategy,
      optionsJson: jsonText(context.options),
      ...(contextWindow !== undefined && { contextWindow: BigInt(contextWindow) }),
      strategies: (context.strategies ?? []).map(middleware),
    },
    ...(manifest.history && { history: historyMessage(manifest.history) }),
    agentMiddleware: manifest.agentMiddleware.map(middleware),
    chatMiddleware: manifest.chatMiddleware.map(middleware),
    functionMiddleware: manifest.functionMiddleware.map(middleware),
    initialToolChoice: manifest.initialToolChoice,
    outputTopic: manifest.outputTopic,
    followTopics: [...manifest.followTopics],
    unreviewedDeltas: manifest.unreviewedDeltas,
    optionsJson: jsonText(manifest.options),
  };
}

function modelMessage({ timeoutMs, maxOutputTokens, ...model }: ModelSettings) {
  return {
    ...model,
    alsoAllowed: [...model.alsoAllowed],
    ...(maxOutputTokens !== undefined && { maxOutputTokens: BigInt(maxOutputTokens) }),
    ...(timeoutMs !== undefined && { timeout: durationFromMs(timeoutMs) }),
  };
}

function middleware({ name, options }: MiddlewareSetting) {
  return { name, optionsJson: jsonText(options) };
}

function historyMessage({ provider, options }: HistorySettings) {
  return { provider, optionsJson: jsonText(options) };
}

function jsonText(options: JsonObject | undefined): string {
  return options === undefined ? '' : JSON.stringify(options);
}
