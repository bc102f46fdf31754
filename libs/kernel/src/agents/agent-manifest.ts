import type { PriorityName } from '../runs/priority.ts';
import type { HistoryRetention } from '../runs/retention.ts';

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
  'external',
] as const;

/** One of {@link AGENT_KINDS}. */
export type AgentKind = (typeof AGENT_KINDS)[number];

/**
 * What happens after an action of the agent is rejected or repeated too often (AG-10): the agent stops, or its model
 * receives the reason.
 */
export type RefusalHandling = 'stop' | 'tell_model';

/** The behavior of an agent that lost its slot: wait for a slot, or end with a partial result (SB-4). */
export type PreemptionHandling = 'park' | 'partial';

/** The names of the enum values in a manifest, by field. */
export interface ManifestNames {
  readonly kind: AgentKind;
  readonly priority: PriorityName;
  readonly retention: HistoryRetention;
  readonly onRefusal: RefusalHandling;
  readonly onPreempt: PreemptionHandling;
}
