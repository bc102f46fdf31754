import type { ExecutionMeterService } from '@writ/contracts/writ/meter/v1/execution_meter_service_pb';
import type { Handlers } from '@writ/rpc';
import { closeTab as close } from '../app/tabs/open-tab.ts';
import { agentKey, tabMessage } from '../wire/tab.ts';
import type { RpcContext } from './rpc-context.ts';

/**
 * Closes a tab and returns its balances and its last events. With `only_if_settled`, leaves the tab open while budget
 * is reserved or a call has not ended. Idempotent.
 */
export function closeTab(context: RpcContext): Handlers<typeof ExecutionMeterService>['closeTab'] {
  return async (request) => {
    const key = agentKey(request.tab);
    context.flushEvents();
    const { events, ...view } = await close(context, key, request);
    return { tab: tabMessage(view), events };
  };
}
