import { durationMs, timestampFromDate } from '@bufbuild/protobuf/wkt';
import type { ToolGatewayService } from '@writ/contracts/writ/tool/v1/tool_gateway_service_pb';
import type { Handlers } from '@writ/rpc';
import { freezeScope } from '../app/freezes/freeze.ts';
import type { GatewayContext } from '../context.ts';
import { liftFreeze } from '../store/freezes.ts';
import { toFreezeOrder } from '../wire/freeze-order.ts';

const DEFAULT_WAIT_MS = 1_000;

/** Freezes a scope and answers with the calls that are still in flight when the wait ends (SV-9, SUP-8). */
export function freeze(context: GatewayContext): Handlers<typeof ToolGatewayService>['freeze'] {
  return async ({ order }) => {
    const waitMs = order?.wait === undefined ? DEFAULT_WAIT_MS : durationMs(order.wait);
    const calls = await freezeScope(context, toFreezeOrder(order, context.clock.now()), waitMs);
    return {
      inFlight: calls.map(({ key, tool, startedAt }) => ({
        ...key,
        target: tool,
        startTime: timestampFromDate(startedAt),
      })),
    };
  };
}

/** Lifts one order; other orders that freeze the same scope stay in force (SV-9). */
export function unfreeze({
  store,
  clock,
  telemetry,
}: GatewayContext): Handlers<typeof ToolGatewayService>['unfreeze'] {
  return async ({ orderId }) => {
    const lifted = await store.transaction((trx) => liftFreeze(trx, orderId, clock.now()));
    telemetry.log.info({ order_id: orderId, lifted }, 'freeze lifted');
    return { lifted };
  };
}
