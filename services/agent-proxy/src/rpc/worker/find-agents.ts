import {
  AgentPresence,
  type AgentWorkerService,
} from '@writ/contracts/writ/worker/v1/agent_worker_service_pb';
import { assertServesTenant } from '@writ/identity';
import type { Handler } from '@writ/rpc';
import { findAgents as find, type Presence } from '../../app/agent/read-agents.ts';
import type { ProxyContext } from '../../context.ts';

const PRESENCES: Readonly<Record<Presence, AgentPresence>> = {
  alive: AgentPresence.ALIVE,
  ended: AgentPresence.ENDED,
  unknown: AgentPresence.UNKNOWN,
  not_served: AgentPresence.UNSPECIFIED,
};

/** Returns the presence of external agents in this agent-proxy, for the supervisor's sweep (BD-3). */
export function findAgents(
  context: ProxyContext,
): Handler<typeof AgentWorkerService.method.findAgents> {
  return async ({ agents }, { caller }) => {
    for (const { tenant } of agents) assertServesTenant(caller, tenant);
    const keys = agents.map(({ agentInstance: instance, ...key }) => ({ ...key, instance }));
    const presences = await find(context, keys);
    return { presences: presences.map((presence) => PRESENCES[presence]) };
  };
}
