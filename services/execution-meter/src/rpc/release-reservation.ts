import type { ExecutionMeterService } from '@writ/contracts/writ/meter/v1/execution_meter_service_pb';
import type { Handlers } from '@writ/rpc';
import { release } from '../app/tabs/reservations.ts';
import { reservationMessage } from '../wire/reservation.ts';
import { agentKey } from '../wire/tab.ts';
import type { RpcContext } from './rpc-context.ts';

/** Releases a reservation on every level (EM-3). Idempotent. */
export function releaseReservation(
  context: RpcContext,
): Handlers<typeof ExecutionMeterService>['releaseReservation'] {
  return async ({ tab, callId }) => ({
    reservation: reservationMessage(await release(context, agentKey(tab), callId)),
  });
}
