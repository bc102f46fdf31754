import type { ExecutionMeterService } from '@writ/contracts/writ/meter/v1/execution_meter_service_pb';
import type { Handlers } from '@writ/rpc';
import { requireTab } from '../../store/admit.ts';
import { closeTab as writeClosed } from '../../store/tabs.ts';
import { tabMessage } from '../messages/tab.ts';
import { agentKey } from '../messages/tab-key.ts';
import type { RpcContext } from '../rpc-context.ts';

/** Closes a tab and returns its balances. Idempotent. */
export function closeTab(context: RpcContext): Handlers<typeof ExecutionMeterService>['closeTab'] {
  const { store, clock, hurryEvents } = context;
  return async (request) => {
    const key = agentKey(request.tab);
    hurryEvents();
    return await store.transaction(async (trx) => {
      const tab = await requireTab(trx, key);
      if (tab.state === 'open') await writeClosed(trx, key, clock.now());
      return { tab: await tabMessage(context, trx, await requireTab(trx, key)) };
    });
  };
}
