import { reduceAgent } from '../../domain/agent/state.ts';
import { type AgentChanges, statusColumns } from '../../store/agents.ts';
import type { RunScope } from '../scope.ts';

/** The columns of an agent without a lease. */
export const NO_LEASE = { lease_owner: null, lease_expires_at: null } as const;

/** Returns the columns of an agent whose lease is released. */
export function releasedColumns(
  { session }: RunScope,
  event: Parameters<typeof reduceAgent>[1],
): AgentChanges {
  const status = reduceAgent(session.status, event);
  return { ...statusColumns(status, session.meta.clock.now()), ...NO_LEASE };
}
