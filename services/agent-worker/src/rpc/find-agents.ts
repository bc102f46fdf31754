import {
  AgentPresence,
  type AgentWorkerService,
} from '@writ/contracts/writ/worker/v1/agent_worker_service_pb';
import { assertServesTenant } from '@writ/identity';
import type { Handler } from '@writ/rpc';
import type { Dependencies } from '../app/agents/dependencies.ts';
import { findAgents as find, type Presence } from '../app/agents/find-agents.ts';

const PRESENCES: Readonly<Record<Presence, AgentPresence>> = {
  alive: AgentPresence.ALIVE,
  ended: AgentPresence.ENDED,
  unknown: AgentPresence.UNKNOWN,
  not_served: AgentPresence.UNSPECIFIED,
};

/** Returns the presence of agents in the store of this worker, for the supervisor's sweep (BD-3). */
export function findAgents(
  dependencies: Dependencies,
): Handler<typeof AgentWorkerService.method.findAgents> {
  return async ({ agents }, call) => {
    for (const { tenant } of agents) assertServesTenant(call.caller, tenant);
    const keys = agents.map(({ agentInstance: instance, ...key }) => ({ ...key, instance }));
    const presences = await find(dependencies, keys);
    return { presences: presences.map((presence) => PRESENCES[presence]) };
  };
}
