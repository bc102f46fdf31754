import {
  type ExecutionMeterService,
  SettleRequestSchema,
} from '@writ/contracts/writ/meter/v1/execution_meter_service_pb';
import type { Handlers } from '@writ/rpc';
import { settle as settleReservation } from '../app/tabs/reservations.ts';
import { requestDigest } from '../wire/request-digest.ts';
import { readSettledSpending, reservationMessage } from '../wire/reservation.ts';
import { agentKey, tabMessage } from '../wire/tab.ts';
import type { RpcContext } from './rpc-context.ts';

/** Settles a reservation; usage above the reservation becomes debt (EM-3). */
export function settle(context: RpcContext): Handlers<typeof ExecutionMeterService>['settle'] {
  return async (request, { traceparent }) => {
    const { entry, view } = await settleReservation(context, {
      key: agentKey(request.tab),
      callId: request.callId,
      requestDigest: requestDigest(SettleRequestSchema, request),
      spent: readSettledSpending(request),
      model: request.model,
      traceparent,
    });
    return { reservation: reservationMessage(entry), tab: tabMessage(view) };
  };
}
