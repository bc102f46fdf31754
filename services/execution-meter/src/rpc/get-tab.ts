import type { ExecutionMeterService } from '@writ/contracts/writ/meter/v1/execution_meter_service_pb';
import { type AgentKey, PermissionDeniedError } from '@writ/kernel';
import type { CallContext, Handlers } from '@writ/rpc';
import { admitWorker } from '../app/tabs/admit-worker.ts';
import { readTab } from '../app/tabs/tab-view.ts';
import { agentKey, tabMessage } from '../wire/tab.ts';
import type { RpcContext } from './rpc-context.ts';

/** Returns a tab. A worker can read only the tab of its own agent; the read records the epoch of the worker (RT-2). */
export function getTab(context: RpcContext): Handlers<typeof ExecutionMeterService>['getTab'] {
  return async ({ tab }, call) => {
    const own = ownKey(call);
    const requested = tab === undefined && own !== undefined ? own : agentKey(tab);
    if (own !== undefined && !isSame(own, requested)) {
      throw new PermissionDeniedError('TAB_WRONG_OWNER', 'tab must belong to the calling agent.', {
        field: 'tab',
      });
    }
    const { epoch } = call.caller;
    if (own !== undefined && epoch !== undefined) await admitWorker(context, own, epoch);
    return { tab: tabMessage(await readTab(context, requested)) };
  };
}

function ownKey({ caller }: CallContext): AgentKey | undefined {
  if (caller.agent === undefined) return undefined;
  const { tenant, runId, agent } = caller.agent;
  return { tenant, runId, instance: agent.instance };
}

function isSame(a: AgentKey, b: AgentKey): boolean {
  return a.tenant === b.tenant && a.runId === b.runId && a.instance === b.instance;
}
