import type { ExecutionMeterService } from '@writ/contracts/writ/meter/v1/execution_meter_service_pb';
import type { Handlers } from '@writ/rpc';
import { liftFreeze } from '../store/freezes.ts';
import type { RpcContext } from './rpc-context.ts';

/** Lifts one freeze order; other orders for the same scope remain (SV-9). */
export function unfreeze({
  store,
  clock,
  telemetry,
}: RpcContext): Handlers<typeof ExecutionMeterService>['unfreeze'] {
  return async ({ orderId }) => {
    const lifted = await store.transaction((trx) => liftFreeze(trx, orderId, clock.now()));
    telemetry.log.info({ order_id: orderId, lifted }, 'freeze lifted');
    return { lifted };
  };
}
