import type { HistoryRetention, JsonObject, PriorityName } from '@writ/kernel';

/** The loops that can run an agent (AG-1). */
export type AgentKind =
  | 'react'
  | 'json-action'
  | 'orchestrator'
  | 'user-proxy'
  | 'information'
  | 'personal-feed'
  | 'flow'
  | 'custom';

/** What a blocked, refused or looping action does to the agent (AG-10). */
type RefusalHandling = 'stop' | 'tell_model';

/** Which model an agent uses and how. */
export interface ModelSettings {
  /** Catalog alias; empty when the agent calls no model. */
  readonly model: string;
  readonly alsoAllowed: readonly string[];
  readonly temperature?: number;
  readonly maxOutputTokens?: number;
  readonly jsonMode: boolean;
  /** Longest wait for one attempt at a model call. */
  readonly timeoutMs?: number;
}

/** Bounds of an agent's loop; unset takes the kind's default, zero means zero. */
export interface AgentLimits {
  readonly maxSteps?: number;
  readonly maxToolCalls?: number;
  readonly maxIterations?: number;
  readonly maxRefusals?: number;
  readonly maxRetries?: number;
}

/** One agent that another may hand work to (AG-3). */
export interface SubAgent {
  readonly name: string;
  readonly description: string;
  readonly askTimeoutMs?: number;
  readonly priority?: PriorityName;
}

/** When a loop counts as gone wrong (AG-6). */
interface GuardrailSettings {
  readonly maxTokensRecoveries?: number;
  readonly maxRepeatedToolSteps?: number;
  readonly reserveTokens?: number;
  readonly reserveCostFraction?: number;
}

/** How the model's view is kept small (AG-8). */
interface ContextSettings {
  readonly contextWindow?: number;
  readonly strategy: string;
  readonly options: JsonObject;
}

/** One middleware that is switched on (AG-9). */
export interface MiddlewareSetting {
  readonly name: string;
  readonly options: JsonObject;
}

/**
 * An agent's definition as the supervisor delivered it (AG-1): plain JSON, kept with the agent, so
 * that its run stays on what it started with.
 */
export interface AgentManifest {
  readonly name: string;
  readonly definitionHash: string;
  readonly kind: AgentKind;
  readonly description: string;
  readonly instructions: string;
  readonly finalInstructions: string;
  readonly model: ModelSettings;
  readonly tools: readonly string[];
  readonly limits: AgentLimits;
  readonly retention?: HistoryRetention;
  /** Absent: the kind's default. */
  readonly onRefusal?: RefusalHandling;
  readonly subAgents: readonly SubAgent[];
  readonly guardrails: GuardrailSettings;
  readonly context: ContextSettings;
  readonly agentMiddleware: readonly MiddlewareSetting[];
  readonly chatMiddleware: readonly MiddlewareSetting[];
  readonly functionMiddleware: readonly MiddlewareSetting[];
  readonly initialToolChoice: string;
  readonly outputTopic: string;
  readonly followTopics: readonly string[];
  readonly unreviewedDeltas: boolean;
  readonly options: JsonObject;
}
