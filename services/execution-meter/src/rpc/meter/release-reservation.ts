import type { ExecutionMeterService } from '@writ/contracts/writ/meter/v1/execution_meter_service_pb';
import type { Handlers } from '@writ/rpc';
import { requireTab } from '../../store/admit.ts';
import { book } from '../../store/book.ts';
import { reservationMessage } from '../messages/reservation.ts';
import { agentKey } from '../messages/tab-key.ts';
import type { RpcContext } from '../rpc-context.ts';

/** Releases a reservation on every level (EM-3). Idempotent. */
export function releaseReservation({
  store,
  clock,
  catalog,
}: RpcContext): Handlers<typeof ExecutionMeterService>['releaseReservation'] {
  return async (request) => {
    const key = agentKey(request.tab);
    const { entry } = await store.transaction(async (trx) =>
      book(trx, {
        tab: await requireTab(trx, key),
        tenantCaps: catalog.tenantCaps(key.tenant),
        id: { kind: 'reserve', callId: request.callId, attempt: 0 },
        events: [{ type: 'release' }],
        at: clock.now(),
      }),
    );
    return { reservation: reservationMessage(entry) };
  };
}
