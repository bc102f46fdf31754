import type { PriorityName, SpawnBudget } from '@writ/kernel';
import type { AgentLimits, AgentManifest, ModelSettings } from './agent-manifest.ts';

/** Settings that have a default that depends on other settings, or a type that differs from the manifest. */
type Differing =
  | 'definitionHash'
  | 'model'
  | 'limits'
  | 'executionBudget'
  | 'sessionBudget'
  | 'spawnBudget'
  | 'priority'
  | 'retention'
  | 'onRefusal'
  | 'onPreempt'
  | 'subAgents'
  | 'guardrails'
  | 'context'
  | 'agentMiddleware'
  | 'chatMiddleware'
  | 'functionMiddleware';

type Child = AgentManifest['subAgents'][number];

/** The settings of an agent as they were read, with the defaults that do not depend on other settings. */
export interface AgentDefinition
  extends Omit<AgentManifest, Differing>,
    Partial<Pick<AgentManifest, 'retention' | 'onRefusal' | 'onPreempt' | 'guardrails'>> {
  /** Omitted for agent kinds that call no model. */
  readonly model?: Omit<ModelSettings, 'jsonMode'> & Partial<Pick<ModelSettings, 'jsonMode'>>;
  readonly limits?: Partial<AgentLimits>;
  readonly budget?: BudgetDefinition;
  readonly sessionBudget?: Omit<BudgetDefinition, 'maxSeconds' | 'deadlineMs'>;
  readonly spawn?: Partial<SpawnBudget>;
  readonly priority?: Lowercase<PriorityName>;
  readonly subAgents: readonly (Pick<Child, 'name'> &
    Partial<Omit<Child, 'priority'>> & { readonly priority?: Lowercase<PriorityName> })[];
  readonly context?: Partial<AgentManifest['context']>;
  readonly middleware?: {
    readonly agent?: AgentManifest['agentMiddleware'];
    readonly chat?: AgentManifest['chatMiddleware'];
    readonly function?: AgentManifest['functionMiddleware'];
  };
}

interface BudgetDefinition {
  readonly maxSeconds?: number;
  readonly maxTokens?: number;
  /** Decimal USD. */
  readonly maxCostUsd?: string | number;
  readonly maxTurns?: number;
  readonly deadlineMs?: number;
}

/**
 * The settings of one agent, in agents.yaml and for createAgent. Every key has the meaning and the default that
 * docs/reference/configuration-files.md states for it; durations are text such as `30s` or `1m30s`, money is decimal
 * USD. An omitted limit is unlimited, unless it has a default; 0 permits nothing.
 */
export type AgentSettings = Settings<AgentDefinition>;

/** Required keys, which identify an agent, a model, a middleware or a provider. */
type Identity = 'name' | 'kind' | 'model' | 'provider';

/** `T` with snake_case keys and durations as text; only the keys in {@link Identity} are required. */
type Settings<T> = string extends keyof T
  ? T
  : T extends readonly (infer E)[]
    ? readonly Settings<E>[]
    : T extends object
      ? { readonly [K in Field<T> as IsIdentity<T, K> extends true ? K : never]: T[K] } & {
          readonly [K in Field<T> as IsIdentity<T, K> extends true
            ? never
            : SettingName<K>]?: K extends `${string}Ms`
            ? string
            : Settings<Exclude<T[K], undefined>>;
        }
      : T;

type Field<T> = keyof T & string;

type IsIdentity<T, K extends keyof T> = K extends Identity
  ? T[K] extends string
    ? true
    : false
  : false;

type SettingName<K extends string> = SnakeCase<K extends `${infer Name}Ms` ? Name : K>;

type SnakeCase<S extends string> = S extends `${infer Head}${infer Tail}`
  ? `${Head extends Lowercase<Head> ? Head : `_${Lowercase<Head>}`}${SnakeCase<Tail>}`
  : S;
