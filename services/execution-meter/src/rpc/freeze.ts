import { setTimeout as sleep } from 'node:timers/promises';
import { durationMs, timestampFromDate } from '@bufbuild/protobuf/wkt';
import type { ExecutionMeterService } from '@writ/contracts/writ/meter/v1/execution_meter_service_pb';
import type { Handlers } from '@writ/rpc';
import { FREEZES } from '../app/calls/freeze-watch.ts';
import type { InFlightCall } from '../app/calls/in-flight-call.ts';
import { type FreezeScope, frozenError, scopeKey } from '../domain/freeze.ts';
import { requestIdReused } from '../domain/id-reused.ts';
import { purgeAnswers, runningCalls } from '../store/calls.ts';
import { insertFreeze, type NewFreeze } from '../store/freezes.ts';
import type { MeterStore } from '../store/meter-store.ts';
import { readFreezeOrder } from '../wire/freeze-order.ts';
import type { RpcContext } from './rpc-context.ts';

const DEFAULT_WAIT_MS = 1_000;
/** Between two looks what other replicas have under way. */
const LOOK_MS = 25;

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
      'freeze recorded',
    );
    if (!inForce) return { inFlight: [] };
    const flights = calls.inFlight(scope);
    for (const call of flights) call.abort(frozenError(order.freeze));
    context.store.replicas.hint(FREEZES);
    const wait = message?.wait === undefined ? DEFAULT_WAIT_MS : durationMs(message.wait);
    const [, elsewhere] = await Promise.all([
      settled(flights, wait),
      settledElsewhere(context.store, scope, wait),
    ]);
    return { inFlight: [...calls.inFlight(scope).map(toInFlight), ...elsewhere] };
  };
}

/** Writes the order down, and deletes what the run's end is to delete; answers whether it is in force. */
function record({ store }: RpcContext, order: NewFreeze): Promise<boolean> {
  const { scope, freeze: frozen, purges } = order;
  return store.transaction(async (trx) => {
    const known = await insertFreeze(trx, order);
    if (known.scope !== scopeKey(scope)) throw requestIdReused('order.order_id');
    const { tenant, runId, agentInstance } = scope;
    const endsRun = frozen.cause === 'end' && agentInstance === undefined;
    if (endsRun && tenant !== undefined && runId !== undefined) {
      await purgeAnswers(trx, { tenant, runId }, purges);
    }
    return !known.lifted;
  });
}

async function settled(flights: readonly InFlightCall[], waitMs: number): Promise<void> {
  if (flights.length === 0 || waitMs === 0) return;
  const stop = new AbortController();
  const waited = sleep(waitMs, undefined, { signal: stop.signal }).catch(() => undefined);
  await Promise.race([Promise.all(flights.map(({ done }) => done)), waited]);
  stop.abort();
}

/** Waits until the other replicas have no calls of the scope under way, `waitMs` at most; lists what they have. */
async function settledElsewhere({ db, replicas }: MeterStore, scope: FreezeScope, waitMs: number) {
  if (!replicas.shared) return [];
  const until = performance.now() + waitMs;
  for (;;) {
    const running = await runningCalls(db, scope);
    const calls = running.filter(({ owner }) => owner !== replicas.id);
    const left = until - performance.now();
    if (calls.length === 0 || left <= 0) {
      return calls.map(({ tenant, runId, agentInstance, callId, model, startedAt }) => ({
        ...{ tenant, runId, agentInstance, callId },
        target: model,
        startTime: timestampFromDate(startedAt),
      }));
    }
    await sleep(Math.min(LOOK_MS, left));
  }
}

function toInFlight({ request, startedAt }: InFlightCall) {
  const { tenant, runId, agentInstance, callId, model } = request;
  const startTime = timestampFromDate(startedAt);
  return { tenant, runId, agentInstance, callId, target: model, startTime };
}
