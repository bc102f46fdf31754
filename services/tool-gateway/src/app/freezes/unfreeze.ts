import type { ToolGatewayService } from '@writ/contracts/writ/tool/v1/tool_gateway_service_pb';
import type { Handlers } from '@writ/rpc';
import type { GatewayContext } from '../../context.ts';
import { liftFreeze } from '../../store/freezes.ts';

/** Lifts one order, and no other that freezes the same (SV-9). */
export function unfreeze({
  store,
  clock,
  telemetry,
}: GatewayContext): Handlers<typeof ToolGatewayService>['unfreeze'] {
  return async ({ orderId }) => {
    const lifted = await store.transaction((trx) => liftFreeze(trx, orderId, clock.now()));
    telemetry.log.info({ order_id: orderId, lifted }, 'A freeze was lifted.');
    return { lifted };
  };
}
