import type { ExecutionMeterService } from '@writ/contracts/writ/meter/v1/execution_meter_service_pb';
import type { Handlers } from '@writ/rpc';
import { readBalances } from '../app/tabs/tab-view.ts';
import { levelMessage } from '../wire/tab.ts';
import type { RpcContext } from './rpc-context.ts';

/** Returns the balances of a session and of a tenant's current day and month (EM-10). */
export function getBalances(
  context: RpcContext,
): Handlers<typeof ExecutionMeterService>['getBalances'] {
  return async ({ tenant, sessionId }) => {
    const levels = await readBalances(context, tenant, sessionId);
    return { levels: levels.map((balance) => levelMessage(balance)) };
  };
}
