import { durationMs } from '@bufbuild/protobuf/wkt';
import {
  type ExecutionMeterService,
  ReserveRequestSchema,
} from '@writ/contracts/writ/meter/v1/execution_meter_service_pb';
import type { Handlers } from '@writ/rpc';
import { reserve as createReservation } from '../app/tabs/reservations.ts';
import { requestDigest } from '../wire/request-digest.ts';
import { reservationMessage } from '../wire/reservation.ts';
import { agentKey, undividedUsage } from '../wire/tab.ts';
import type { RpcContext } from './rpc-context.ts';

const DEFAULT_TTL_MS = 60_000;

/** Reserves budget on every level, or fails with the first cap that the reservation would exceed (EM-3). */
export function reserve(context: RpcContext): Handlers<typeof ExecutionMeterService>['reserve'] {
  return async (request, { traceparent }) => {
    const { callId, tokens, costNanoUsd: cost, turns, ttl } = request;
    const entry = await createReservation(context, {
      key: agentKey(request.tab),
      callId,
      requestDigest: requestDigest(ReserveRequestSchema, request),
      hold: { usage: undividedUsage(tokens), cost, turns },
      ttlMs: ttl === undefined ? DEFAULT_TTL_MS : durationMs(ttl),
      traceparent,
    });
    return { reservation: reservationMessage(entry) };
  };
}
