import type {
  ExecutionBudget,
  HistoryRetention,
  JsonObject,
  PriorityName,
  SpawnBudget,
} from '@writ/kernel';

/** The loops that can run an agent (AG-1). */
export const AGENT_KINDS = [
  'react',
  'json-action',
  'orchestrator',
  'user-proxy',
  'information',
  'personal-feed',
  'flow',
  'custom',
] as const;

/** One of {@link AGENT_KINDS}. */
export type AgentKind = (typeof AGENT_KINDS)[number];

/** The effect of a blocked, refused or looping action on the agent (AG-10). */
export type RefusalHandling = 'stop' | 'tell_model';

/** What an agent does that lost its slot: wait for one, or end with a partial result (SB-4). */
export type PreemptionHandling = 'park' | 'partial';

/** The model of an agent and its settings. */
export interface ModelSettings {
  /** Catalog alias; empty when the agent calls no model. */
  readonly model: string;
  /** Further aliases that it may be started with; `*` matches any characters. */
  readonly alsoAllowed: readonly string[];
  readonly temperature: number;
  readonly maxOutputTokens?: number;
  readonly jsonMode: boolean;
  /** Timeout of one model call. */
  readonly timeoutMs?: number;
}

/** Limits of an agent's loop; unset = unlimited, zero = zero. */
export interface AgentLimits {
  readonly maxSteps?: number;
  readonly maxToolCalls?: number;
  readonly maxIterations?: number;
  readonly maxRefusals: number;
  readonly maxRetries: number;
}

/** An agent that another may delegate to (AG-3). */
export interface SubAgent {
  readonly name: string;
  readonly description: string;
  readonly askTimeoutMs: number;
  /** Highest priority in this place; unset = that of its own manifest. */
  readonly priority?: PriorityName;
}

/** When a loop counts as failed (AG-6); unset = the worker's default. */
export interface GuardrailSettings {
  readonly maxTokensRecoveries?: number;
  readonly maxRepeatedToolSteps?: number;
  readonly reserveTokens?: number;
  readonly reserveCostFraction?: number;
}

/** How the context of the model is kept small (AG-8). */
export interface ContextSettings {
  readonly contextWindow?: number;
  readonly strategy: string;
  readonly options?: JsonObject;
  /** A pipeline, instead of `strategy` and `options`. */
  readonly strategies?: readonly StrategySetting[];
}

/** One strategy of a pipeline (AG-8). */
export interface StrategySetting {
  readonly name: string;
  readonly options?: JsonObject;
}

/** A history provider of a module of the workers (AG-8). */
export interface HistorySettings {
  readonly provider: string;
  readonly options?: JsonObject;
}

/** One enabled middleware (AG-9). */
export interface MiddlewareSetting {
  readonly name: string;
  readonly options?: JsonObject;
}

/** The definition of an agent as the supervisor stores it: workers read it and cannot change it (AG-1, SUP-9). */
export interface AgentManifest {
  readonly name: string;
  /** SHA-256 over all other fields, in hex: a run keeps the definition that it started with. */
  readonly definitionHash: string;
  readonly kind: AgentKind;
  readonly description: string;
  readonly instructions: string;
  readonly finalInstructions: string;
  readonly model: ModelSettings;
  readonly tools: readonly string[];
  readonly limits: AgentLimits;
  readonly executionBudget: ExecutionBudget;
  /** Caps of the session of a run that this agent is the root of; unset = none (EM-3). */
  readonly sessionBudget?: ExecutionBudget;
  readonly spawnBudget: SpawnBudget;
  readonly priority: PriorityName;
  readonly retention: HistoryRetention;
  readonly onRefusal: RefusalHandling;
  readonly onPreempt: PreemptionHandling;
  /** Tools at or above this risk need an approval even if no rule requires one. */
  readonly approvalRequiredRisk?: number;
  readonly subAgents: readonly SubAgent[];
  readonly guardrails: GuardrailSettings;
  readonly context: ContextSettings;
  /** Unset: the store of the worker. */
  readonly history?: HistorySettings;
  readonly agentMiddleware: readonly MiddlewareSetting[];
  readonly chatMiddleware: readonly MiddlewareSetting[];
  readonly functionMiddleware: readonly MiddlewareSetting[];
  /** Empty when the model may choose. */
  readonly initialToolChoice: string;
  readonly outputTopic: string;
  readonly followTopics: readonly string[];
  readonly unreviewedDeltas: boolean;
  /** Options of the agent kind. */
  readonly options?: JsonObject;
}
