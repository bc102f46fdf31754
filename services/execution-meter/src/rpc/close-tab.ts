import type { ExecutionMeterService } from '@writ/contracts/writ/meter/v1/execution_meter_service_pb';
import type { Handlers } from '@writ/rpc';
import { closeTab as close } from '../app/tabs/open-tab.ts';
import { agentKey, tabMessage } from '../wire/tab.ts';
import type { RpcContext } from './rpc-context.ts';

/** Closes a tab, on request only when it is settled, and returns its balances and its last events. Idempotent. */
export function closeTab(context: RpcContext): Handlers<typeof ExecutionMeterService>['closeTab'] {
  return async (request) => {
    const key = agentKey(request.tab);
    context.flushEvents();
    const { events, ...view } = await close(context, key, request);
    return { tab: tabMessage(view), events };
  };
}
