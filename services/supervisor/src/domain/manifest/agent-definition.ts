import type { HistoryRetention, JsonObject, PriorityName } from '@writ/kernel';
import type {
  AgentKind,
  HistorySettings,
  MiddlewareSetting,
  PreemptionHandling,
  RefusalHandling,
  StrategySetting,
} from './agent-manifest.ts';

/** The definition of an agent; durations are milliseconds. */
export interface AgentDefinition {
  readonly name: string;
  readonly kind: AgentKind;
  readonly description?: string;
  readonly instructions?: string;
  readonly final_instructions?: string;
  /** Omitted by kinds that call no model. */
  readonly model?: {
    readonly model: string;
    readonly also_allowed?: readonly string[];
    readonly temperature?: number;
    readonly max_output_tokens?: number;
    readonly json_mode?: boolean;
    readonly timeout?: number;
  };
  readonly tools?: readonly string[];
  readonly limits?: {
    readonly max_steps?: number;
    readonly max_tool_calls?: number;
    readonly max_iterations?: number;
    readonly max_refusals?: number;
    readonly max_retries?: number;
  };
  readonly budget?: {
    readonly max_seconds?: number;
    readonly max_tokens?: number;
    readonly max_cost_usd?: string | number;
    readonly max_turns?: number;
    readonly deadline?: number;
  };
  readonly session_budget?: {
    readonly max_tokens?: number;
    readonly max_cost_usd?: string | number;
    readonly max_turns?: number;
  };
  readonly spawn?: {
    readonly max_agents?: number;
    readonly allow_preempt?: boolean;
    readonly max_total_spawns?: number;
    readonly max_depth?: number;
  };
  readonly priority?: Lowercase<PriorityName>;
  readonly retention?: HistoryRetention;
  readonly on_refusal?: RefusalHandling;
  readonly on_preempt?: PreemptionHandling;
  readonly approval_required_risk?: number;
  readonly sub_agents?: readonly {
    readonly name: string;
    readonly description?: string;
    readonly ask_timeout?: number;
    readonly priority?: Lowercase<PriorityName>;
  }[];
  readonly guardrails?: {
    readonly max_tokens_recoveries?: number;
    readonly max_repeated_tool_steps?: number;
    readonly reserve_tokens?: number;
    readonly reserve_cost_fraction?: number;
  };
  readonly context?: {
    readonly context_window?: number;
    readonly strategy?: string;
    readonly options?: JsonObject;
    readonly strategies?: readonly StrategySetting[];
  };
  readonly history?: HistorySettings;
  readonly middleware?: {
    readonly agent?: readonly MiddlewareSetting[];
    readonly chat?: readonly MiddlewareSetting[];
    readonly function?: readonly MiddlewareSetting[];
  };
  readonly initial_tool_choice?: string;
  readonly output_topic?: string;
  readonly follow_topics?: readonly string[];
  readonly unreviewed_deltas?: boolean;
  readonly options?: JsonObject;
}
