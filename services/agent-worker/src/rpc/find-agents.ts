import {
  AgentPresence,
  type AgentWorkerService,
} from '@writ/contracts/writ/worker/v1/agent_worker_service_pb';
import { assertServesTenant } from '@writ/identity';
import type { Handler } from '@writ/rpc';
import type { Dependencies } from '../app/agents/dependencies.ts';
import { livingAgents } from '../store/agents.ts';

/** Says which agents live in the store of this worker, for the supervisor's sweep (BD-3). */
export function findAgents({
  store,
  tenants,
}: Dependencies): Handler<typeof AgentWorkerService.method.findAgents> {
  return async ({ agents }, call) => {
    for (const { tenant } of agents) assertServesTenant(call.caller, tenant);
    const keys = agents.map(({ agentInstance: instance, ...key }) => ({ ...key, instance }));
    const isLiving = await livingAgents(store.db, keys);
    const presences = keys.map((key, index) => {
      if (tenants.length > 0 && !tenants.includes(key.tenant)) return AgentPresence.UNSPECIFIED;
      switch (isLiving[index]) {
        case undefined:
          return AgentPresence.UNKNOWN;
        case true:
          return AgentPresence.ALIVE;
        default:
          return AgentPresence.ENDED;
      }
    });
    return { presences };
  };
}
