import type { AgentManifest as ManifestMessage } from '@writ/contracts/writ/supervision/v1/manifest_pb';
import type {
  ExecutionBudget,
  JsonObject,
  ManifestNames,
  PlainMessage,
  SpawnBudget,
} from '@writ/kernel';

type Contract = PlainMessage<ManifestMessage, ManifestNames>;

/** Settings that every stored manifest has. */
type Complete =
  | 'kind'
  | 'executionBudget'
  | 'priority'
  | 'retention'
  | 'onRefusal'
  | 'onPreempt'
  | 'guardrails';

/**
 * Settings whose type differs from the contract: a manifest requires or omits some of their fields, or contains decoded
 * JSON instead of text.
 */
type Changed =
  | 'spawnBudget'
  | 'model'
  | 'limits'
  | 'subAgents'
  | 'context'
  | 'history'
  | 'agentMiddleware'
  | 'chatMiddleware'
  | 'functionMiddleware'
  | 'options';

/** The model of an agent and its settings. The catalog alias is empty when the agent calls no model. */
export type ModelSettings = Required<Pick<ContractModel, 'temperature'>> & ContractModel;
type ContractModel = NonNullable<Contract['model']>;

/** Limits of an agent's loop; unset = unlimited, zero permits nothing. */
export type AgentLimits = Required<Pick<ContractLimits, 'maxRefusals' | 'maxRetries'>> &
  ContractLimits;
type ContractLimits = NonNullable<Contract['limits']>;

type ContractChild = Contract['subAgents'][number];

/** How the context of the model is kept small (AG-8). */
type ContextSettings = Omit<ContractContext, 'options' | 'strategies'> & {
  readonly options?: JsonObject;
  /** A pipeline, instead of `strategy` and `options`. */
  readonly strategies?: readonly NamedSetting[];
};
type ContractContext = NonNullable<Contract['context']>;

/** A middleware or strategy by name (AG-8, AG-9). */
interface NamedSetting {
  readonly name: string;
  readonly options?: JsonObject;
}

/**
 * The definition of an agent as the supervisor stores it: workers read it and cannot change it (AG-1, SUP-9). The
 * fields are those of writ.supervision.v1.AgentManifest.
 */
export interface AgentManifest
  extends Omit<Contract, Complete | Changed>,
    Required<Pick<Contract, Complete>> {
  /**
   * SHA-256, in hex, over all other fields of the definition before a run narrows it. The narrowed manifests of a run
   * keep this hash, which identifies the definition that the run started with.
   */
  readonly definitionHash: string;
  readonly model: ModelSettings;
  readonly limits: AgentLimits;
  /** Session caps that apply if this agent is the root of the run; unset = no caps (EM-3). */
  readonly sessionBudget?: ExecutionBudget;
  readonly spawnBudget: SpawnBudget;
  /**
   * The `priority` of an entry is the maximum priority of the child; unset = the priority in the manifest of the child.
   */
  readonly subAgents: readonly (Required<Pick<ContractChild, 'askTimeoutMs'>> & ContractChild)[];
  readonly context: ContextSettings;
  /** Unset: the store of the worker. */
  readonly history?: { readonly provider: string; readonly options?: JsonObject };
  readonly agentMiddleware: readonly NamedSetting[];
  readonly chatMiddleware: readonly NamedSetting[];
  readonly functionMiddleware: readonly NamedSetting[];
  /** Options of the agent kind. */
  readonly options?: JsonObject;
}
