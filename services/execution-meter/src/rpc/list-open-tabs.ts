import { durationMs } from '@bufbuild/protobuf/wkt';
import type { ExecutionMeterService } from '@writ/contracts/writ/meter/v1/execution_meter_service_pb';
import type { Handlers } from '@writ/rpc';
import { openTabs } from '../store/tabs.ts';
import type { RpcContext } from './rpc-context.ts';

/** Lists the open tabs of all tenants, for the supervisor's sweep (BD-3). */
export function listOpenTabs({
  store,
  clock,
}: RpcContext): Handlers<typeof ExecutionMeterService>['listOpenTabs'] {
  return async ({ after, pageSize: limit, minAge }) => {
    const ageMs = minAge === undefined ? 0 : durationMs(minAge);
    const openedBefore = new Date(clock.now().getTime() - ageMs);
    return { tabs: await openTabs(store.db, { after, limit, openedBefore }) };
  };
}
