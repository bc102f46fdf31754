import { ExecutionMeterService } from '@writ/contracts/writ/meter/v1/execution_meter_service_pb';
import { ModelService } from '@writ/contracts/writ/model/v1/model_service_pb';
import { createFreezeHandlers } from '@writ/freeze';
import { keyRoute } from '@writ/identity';
import { type Route, reserved, route } from '@writ/rpc';
import { freezeParts } from '../app/freezes/freeze-parts.ts';
import { accessResponse } from './access-response.ts';
import { closeTab } from './close-tab.ts';
import { consume } from './consume.ts';
import { countTokens } from './count-tokens.ts';
import { generate } from './generate.ts';
import { getBalances } from './get-balances.ts';
import { getTab } from './get-tab.ts';
import { listModels } from './list-models.ts';
import { listOpenTabs } from './list-open-tabs.ts';
import { openTab } from './open-tab.ts';
import { queryUsage } from './query-usage.ts';
import { releaseReservation } from './release-reservation.ts';
import { reserve } from './reserve.ts';
import type { RpcContext } from './rpc-context.ts';
import { setCaps } from './set-caps.ts';
import { settle } from './settle.ts';

/** Returns the routes of the execution meter. */
export function meterRoutes(context: RpcContext): readonly Route[] {
  const { freeze, unfreeze } = createFreezeHandlers(freezeParts(context, context.calls));
  return [
    route(ExecutionMeterService, {
      openTab: openTab(context),
      consume: consume(context),
      reserve: reserve(context),
      settle: settle(context),
      releaseReservation: releaseReservation(context),
      getTab: getTab(context),
      getBalances: getBalances(context),
      setCaps: setCaps(context),
      queryUsage: queryUsage(context),
      listOpenTabs: listOpenTabs(context),
      closeTab: closeTab(context),
      freeze: reserved(freeze),
      unfreeze: reserved(unfreeze),
    }),
    route(ModelService, {
      generate: generate(context),
      countTokens: countTokens(context),
      accessResponse: accessResponse(context),
      listModels: listModels(context),
    }),
    keyRoute(context.signer),
  ];
}
