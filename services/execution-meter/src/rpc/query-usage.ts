import type { ExecutionMeterService } from '@writ/contracts/writ/meter/v1/execution_meter_service_pb';
import type { Handlers } from '@writ/rpc';
import { queryUsage as query } from '../app/tabs/query-usage.ts';
import { readUsageQuery, usageRow } from '../wire/usage-query.ts';
import type { RpcContext } from './rpc-context.ts';

/** Sums settled usage by agent, run, session, tenant, model or day (EM-10). */
export function queryUsage(
  context: RpcContext,
): Handlers<typeof ExecutionMeterService>['queryUsage'] {
  return async (request) => {
    const page = readUsageQuery(request);
    const { sums, hasMore } = await query(context, page.query);
    return { rows: sums.map(usageRow), nextPageToken: hasMore ? page.nextPageToken : '' };
  };
}
