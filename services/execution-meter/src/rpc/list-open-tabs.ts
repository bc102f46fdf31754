import { durationMs } from '@bufbuild/protobuf/wkt';
import type { ExecutionMeterService } from '@writ/contracts/writ/meter/v1/execution_meter_service_pb';
import type { Handlers } from '@writ/rpc';
import { listOpenTabs as list } from '../app/tabs/list-open-tabs.ts';
import { agentKey } from '../wire/tab.ts';
import type { RpcContext } from './rpc-context.ts';

/** Lists the open tabs of all tenants, for the supervisor's sweep (BD-3). */
export function listOpenTabs(
  context: RpcContext,
): Handlers<typeof ExecutionMeterService>['listOpenTabs'] {
  return async ({ after, pageSize: limit, minAge }) => {
    const ageMs = minAge === undefined ? 0 : durationMs(minAge);
    const tabs = await list(context, { after: after && agentKey(after), limit, ageMs });
    return { tabs: tabs.map(({ instance, ...run }) => ({ ...run, agentInstance: instance })) };
  };
}
