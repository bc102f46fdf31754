import type { ExecutionMeterService } from '@writ/contracts/writ/meter/v1/execution_meter_service_pb';
import type { Handlers } from '@writ/rpc';
import { DEFAULT_NEAR_BUDGET, dayOf } from '../domain/ledger/balance.ts';
import { readScopeLevels } from '../store/balances.ts';
import { levelMessage } from '../wire/tab.ts';
import type { RpcContext } from './rpc-context.ts';

/** Returns the balances of a session and of a tenant's current day and month (EM-10). */
export function getBalances({
  store,
  clock,
  catalog,
}: RpcContext): Handlers<typeof ExecutionMeterService>['getBalances'] {
  return async ({ tenant, sessionId }) => {
    const key = { tenant, sessionId: sessionId || undefined, day: dayOf(clock.now()) };
    const levels = await readScopeLevels(store.db, key, catalog.tenantCaps(tenant));
    return { levels: levels.map((balance) => levelMessage(balance, DEFAULT_NEAR_BUDGET)) };
  };
}
