import type { AgentManifest as ManifestMessage } from '@writ/contracts/writ/supervision/v1/manifest_pb';
import type { AgentKind, ManifestNames, PlainMessage } from '@writ/kernel';

type Contract = PlainMessage<ManifestMessage, ManifestNames>;
type Context = NonNullable<Contract['context']>;

/**
 * Fields of the protobuf message that AgentManifest omits (the budgets, which other services enforce) or redefines with
 * another type.
 */
type Changed =
  | 'executionBudget'
  | 'spawnBudget'
  | 'kind'
  | 'model'
  | 'limits'
  | 'guardrails'
  | 'context';

/**
 * An agent's definition as the supervisor delivered it (AG-1), stored with the agent, so that a running agent keeps
 * the definition that it started with. The fields are those of writ.supervision.v1.AgentManifest.
 */
export interface AgentManifest extends Omit<Contract, Changed> {
  readonly kind: AgentKind;
  /** The catalog alias is empty when the agent calls no model. */
  readonly model: NonNullable<Contract['model']>;
  /** An unset limit has the default of the agent's kind; an explicit 0 is not replaced by the default. */
  readonly limits: NonNullable<Contract['limits']>;
  readonly guardrails: NonNullable<Contract['guardrails']>;
  readonly context: Omit<Context, 'strategies'> & Partial<Pick<Context, 'strategies'>>;
}

/** An agent that this agent may delegate to (AG-3). */
export type SubAgent = AgentManifest['subAgents'][number];

/** A context strategy and its options (AG-8). */
export type StrategySetting = NonNullable<AgentManifest['context']['strategies']>[number];

/** A middleware and its options (AG-9). */
export type MiddlewareSetting = AgentManifest['chatMiddleware'][number];
