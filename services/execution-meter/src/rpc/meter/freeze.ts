import { setTimeout as sleep } from 'node:timers/promises';
import { durationMs, timestampFromDate } from '@bufbuild/protobuf/wkt';
import type { ExecutionMeterService } from '@writ/contracts/writ/meter/v1/execution_meter_service_pb';
import type { Handlers } from '@writ/rpc';
import { frozenError, scopeKey } from '../../domain/freeze.ts';
import type { CallFlight } from '../../providers/calls/call-flight.ts';
import { purgeAnswers } from '../../store/calls.ts';
import { insertFreeze } from '../../store/freezes.ts';
import { type ReadFreezeOrder, readFreezeOrder } from '../messages/freeze-order.ts';
import { requestIdReused } from '../messages/reused.ts';
import type { RpcContext } from '../rpc-context.ts';

const DEFAULT_WAIT_MS = 1_000;

/**
 * Refuses reservations and model calls of a scope from now on, aborts those in flight at the provider,
 * and waits a while for them to be settled (SUP-8, SV-9). The same order again waits and lists again.
 */
export function freeze(context: RpcContext): Handlers<typeof ExecutionMeterService>['freeze'] {
  const { clock, calls, telemetry } = context;
  return async ({ order: message }) => {
    const order = readFreezeOrder(message, clock.now());
    const inForce = await record(context, order);
    const { scope } = order;
    telemetry.log.info(
      {
        order_id: order.freeze.orderId,
        scope: scopeKey(scope),
        cause: order.freeze.cause,
        inForce,
      },
      'A freeze was ordered.',
    );
    if (!inForce) return { inFlight: [] };
    const flights = calls.inFlight(scope);
    const keepAnswers = order.freeze.cause !== 'end' || !order.purges;
    for (const flight of flights) flight.abort(frozenError(order.freeze), keepAnswers);
    const wait = message?.wait === undefined ? DEFAULT_WAIT_MS : durationMs(message.wait);
    await settled(flights, wait);
    return { inFlight: calls.inFlight(scope).map(toInFlight) };
  };
}

/** Writes the order down, and deletes what the run's end is to delete; answers whether it is in force. */
function record(
  { store }: RpcContext,
  { freeze: order, scope, orderedAt, purges }: ReadFreezeOrder,
): Promise<boolean> {
  return store.transaction(async (trx) => {
    const known = await insertFreeze(trx, order, scope, orderedAt);
    if (known.scope !== scopeKey(scope)) throw requestIdReused('order.order_id');
    const { tenant, runId, agentInstance } = scope;
    const endsRun = order.cause === 'end' && agentInstance === undefined;
    if (endsRun && tenant !== undefined && runId !== undefined) {
      await purgeAnswers(trx, { tenant, runId }, purges);
    }
    return !known.lifted;
  });
}

async function settled(flights: readonly CallFlight[], waitMs: number): Promise<void> {
  if (flights.length === 0 || waitMs === 0) return;
  const stop = new AbortController();
  const waited = sleep(waitMs, undefined, { signal: stop.signal }).catch(() => undefined);
  await Promise.race([Promise.all(flights.map(({ done }) => done)), waited]);
  stop.abort();
}

function toInFlight({ ask, startedAt }: CallFlight) {
  const { tenant, runId, agentInstance, callId, model } = ask;
  const startTime = timestampFromDate(startedAt);
  return { tenant, runId, agentInstance, callId, target: model, startTime };
}
