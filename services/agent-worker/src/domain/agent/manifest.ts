import type { HistoryRetention, JsonObject, PriorityName } from '@writ/kernel';

/** The kinds of agent loops (AG-1). */
export type AgentKind =
  | 'react'
  | 'json-action'
  | 'orchestrator'
  | 'user-proxy'
  | 'information'
  | 'personal-feed'
  | 'flow'
  | 'custom';

/** What the agent does after a blocked, refused or looping action (AG-10). */
type RefusalHandling = 'stop' | 'tell_model';

/** What the agent does when it loses its slot (SB-4). */
type PreemptionHandling = 'park' | 'partial';

/** The model of an agent and its parameters. */
export interface ModelSettings {
  /** Catalog alias; empty when the agent calls no model. */
  readonly model: string;
  readonly alsoAllowed: readonly string[];
  readonly temperature?: number;
  readonly maxOutputTokens?: number;
  readonly jsonMode: boolean;
  /** Timeout of one attempt of a model call. */
  readonly timeoutMs?: number;
}

/** Limits of an agent's loop; an unset limit takes the kind's default, zero means zero. */
export interface AgentLimits {
  readonly maxSteps?: number;
  readonly maxToolCalls?: number;
  readonly maxIterations?: number;
  readonly maxRefusals?: number;
  readonly maxRetries?: number;
}

/** An agent that this agent may delegate to (AG-3). */
export interface SubAgent {
  readonly name: string;
  readonly description: string;
  readonly askTimeoutMs?: number;
  readonly priority?: PriorityName;
}

/** Limits of the guardrails (AG-6). */
interface GuardrailSettings {
  readonly maxTokensRecoveries?: number;
  readonly maxRepeatedToolSteps?: number;
  readonly reserveTokens?: number;
  readonly reserveCostFraction?: number;
}

/** How the conversation is fitted into the model's context window (AG-8). */
interface ContextSettings {
  readonly contextWindow?: number;
  readonly strategy: string;
  readonly options: JsonObject;
  /** A pipeline, instead of `strategy` and `options`. */
  readonly strategies?: readonly StrategySetting[];
}

/** A context strategy and its options (AG-8). */
export interface StrategySetting {
  readonly name: string;
  readonly options: JsonObject;
}

/** A history provider of a module and its options (AG-8). */
export interface HistorySetting {
  readonly provider: string;
  readonly options: JsonObject;
}

/** A middleware and its options (AG-9). */
export interface MiddlewareSetting {
  readonly name: string;
  readonly options: JsonObject;
}

/**
 * An agent's definition as the supervisor delivered it (AG-1). Plain JSON, stored with the agent,
 * so that a running agent keeps the definition that it started with.
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
  /** Default: that of the kind. */
  readonly onRefusal?: RefusalHandling;
  /** Default: `park`. */
  readonly onPreempt?: PreemptionHandling;
  readonly subAgents: readonly SubAgent[];
  readonly guardrails: GuardrailSettings;
  readonly context: ContextSettings;
  /** Default: the worker's own store. */
  readonly history?: HistorySetting;
  readonly agentMiddleware: readonly MiddlewareSetting[];
  readonly chatMiddleware: readonly MiddlewareSetting[];
  readonly functionMiddleware: readonly MiddlewareSetting[];
  readonly initialToolChoice: string;
  readonly outputTopic: string;
  readonly followTopics: readonly string[];
  readonly unreviewedDeltas: boolean;
  readonly options: JsonObject;
}
