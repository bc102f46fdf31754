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

/** What a blocked, refused or looping action does to the agent (AG-10). */
export type RefusalHandling = 'stop' | 'tell_model';

/** Which model an agent uses and how. */
export interface ModelSettings {
  /** Catalog alias; empty when the agent calls no model. */
  readonly model: string;
  /** Further aliases that it may be started with, `*` standing for any characters. */
  readonly alsoAllowed: readonly string[];
  readonly temperature: number;
  readonly maxOutputTokens?: number;
  readonly jsonMode: boolean;
  /** Longest wait for one model call. */
  readonly timeoutMs?: number;
}

/** Bounds of an agent's loop; unset = unlimited, zero = zero. */
export interface AgentLimits {
  readonly maxSteps?: number;
  readonly maxToolCalls?: number;
  readonly maxIterations?: number;
  readonly maxRefusals: number;
  readonly maxRetries: number;
}

/** One agent that another may hand work to (AG-3). */
export interface SubAgent {
  readonly name: string;
  readonly description: string;
  readonly askTimeoutMs: number;
  /** The most that it may weigh here; unset = what its own manifest says. */
  readonly priority?: PriorityName;
}

/** When a loop counts as gone wrong (AG-6); unset = the worker's default. */
export interface GuardrailSettings {
  readonly maxTokensRecoveries?: number;
  readonly maxRepeatedToolSteps?: number;
  readonly reserveTokens?: number;
  readonly reserveCostFraction?: number;
}

/** How the model's view is kept small (AG-8). */
export interface ContextSettings {
  readonly contextWindow?: number;
  readonly strategy: string;
  readonly options?: JsonObject;
}

/** One middleware that is switched on (AG-9). */
export interface MiddlewareSetting {
  readonly name: string;
  readonly options?: JsonObject;
}

/** What the supervisor holds of an agent: workers read it and cannot change it (AG-1, SUP-9). */
export interface AgentManifest {
  readonly name: string;
  /** SHA-256 over everything else, in hex: a run stays on the definition that it started with. */
  readonly definitionHash: string;
  readonly kind: AgentKind;
  readonly description: string;
  readonly instructions: string;
  readonly finalInstructions: string;
  readonly model: ModelSettings;
  readonly tools: readonly string[];
  readonly limits: AgentLimits;
  readonly executionBudget: ExecutionBudget;
  readonly spawnBudget: SpawnBudget;
  readonly priority: PriorityName;
  readonly retention: HistoryRetention;
  readonly onRefusal: RefusalHandling;
  /** Tools at or above this risk go to a person even where no rule names them. */
  readonly approvalRequiredRisk?: number;
  readonly subAgents: readonly SubAgent[];
  readonly guardrails: GuardrailSettings;
  readonly context: ContextSettings;
  readonly agentMiddleware: readonly MiddlewareSetting[];
  readonly chatMiddleware: readonly MiddlewareSetting[];
  readonly functionMiddleware: readonly MiddlewareSetting[];
  /** Empty when the model may choose. */
  readonly initialToolChoice: string;
  readonly outputTopic: string;
  readonly followTopics: readonly string[];
  readonly unreviewedDeltas: boolean;
  /** Options of its kind. */
  readonly options?: JsonObject;
}
