import { ExecutionMeterService } from '@writ/contracts/writ/meter/v1/execution_meter_service_pb';
import { ModelService } from '@writ/contracts/writ/model/v1/model_service_pb';
import { keyRoute } from '@writ/identity';
import { type Route, route } from '@writ/rpc';
import { closeTab } from './meter/close-tab.ts';
import { consume } from './meter/consume.ts';
import { freeze } from './meter/freeze.ts';
import { getTab } from './meter/get-tab.ts';
import { openTab } from './meter/open-tab.ts';
import { queryUsage } from './meter/query-usage.ts';
import { releaseReservation } from './meter/release-reservation.ts';
import { reserve } from './meter/reserve.ts';
import { settle } from './meter/settle.ts';
import { unfreeze } from './meter/unfreeze.ts';
import { generate } from './model/generate.ts';
import { listModels } from './model/list-models.ts';
import type { RpcContext } from './rpc-context.ts';

/** Returns the routes of the execution meter. */
export function meterRoutes(context: RpcContext): readonly Route[] {
  return [
    route(ExecutionMeterService, {
      openTab: openTab(context),
      consume: consume(context),
      reserve: reserve(context),
      settle: settle(context),
      releaseReservation: releaseReservation(context),
      getTab: getTab(context),
      queryUsage: queryUsage(context),
      closeTab: closeTab(context),
      freeze: freeze(context),
      unfreeze: unfreeze(context),
    }),
    route(ModelService, {
      generate: generate(context),
      listModels: listModels(context),
    }),
    keyRoute(context.signer),
  ];
}
