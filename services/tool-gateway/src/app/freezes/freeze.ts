import { setTimeout as sleep } from 'node:timers/promises';
import { durationMs, timestampDate, timestampFromDate } from '@bufbuild/protobuf/wkt';
import {
  FreezeCause as ContractCause,
  type FreezeOrder as FreezeOrderMessage,
  type Scope,
} from '@writ/contracts/writ/control/v1/freeze_pb';
import { HistoryRetention as ContractRetention } from '@writ/contracts/writ/supervision/v1/supervision_pb';
import type { ToolGatewayService } from '@writ/contracts/writ/tool/v1/tool_gateway_service_pb';
import { HistoryRetention, InvalidRequestError } from '@writ/kernel';
import type { Handlers } from '@writ/rpc';
import type { GatewayContext } from '../../context.ts';
import {
  type FreezeCause,
  type FreezeOrder,
  type FreezeScope,
  frozenError,
  purges,
  scopeKey,
} from '../../domain/freeze.ts';
import { inFlightCallRows, keyOf, purgeResults } from '../../store/calls.ts';
import { findFreeze, insertFreeze } from '../../store/freezes.ts';
import type { GatewayStore } from '../../store/gateway-store.ts';
import { purgeNotes } from '../../store/notes.ts';
import type { InFlightCall } from '../calls/in-flight-calls.ts';
import { FREEZES } from './freeze-watch.ts';

const DEFAULT_WAIT_MS = 1_000;
/** Between two looks what other replicas have under way. */
const LOOK_MS = 25;

const CAUSES: Readonly<Record<number, FreezeCause>> = {
  [ContractCause.HALT]: 'halt',
  [ContractCause.CANCEL]: 'cancel',
  [ContractCause.DEADLINE]: 'deadline',
  [ContractCause.END]: 'end',
};

const RETENTIONS: Readonly<Record<number, HistoryRetention>> = {
  [ContractRetention.NONE]: HistoryRetention.NONE,
  [ContractRetention.RUN]: HistoryRetention.RUN,
  [ContractRetention.PERMANENT]: HistoryRetention.PERMANENT,
};

/**
 * Refuses calls of a scope from now on, calls off what is in flight and waits for it a while (SV-9,
 * SUP-8). The same order again records nothing, and waits and lists again.
 */
export function freeze(context: GatewayContext): Handlers<typeof ToolGatewayService>['freeze'] {
  const { store, clock, inFlightCalls, telemetry, hurry } = context;
  return async ({ order: message }) => {
    const order = toOrder(message, clock.now());
    const { scope } = order;
    const inForce = await store.transaction(async (trx) => {
      if (!(await insertFreeze(trx, order, clock.now()))) {
        const known = await findFreeze(trx, order.orderId);
        if (known !== undefined && known.scope !== scopeKey(scope)) throw reused();
        if (known?.lifted !== false) return false;
      }
      const { tenant, runId, agentInstance } = scope;
      if (purges(order) && tenant !== undefined && runId !== undefined) {
        await purgeResults(trx, { tenant, runId, ...(agentInstance && { agentInstance }) });
        // Notes are the run's; they stay while others of it may still read them.
        if (agentInstance === undefined) await purgeNotes(trx, { tenant, runId });
      }
      return true;
    });
    telemetry.log.info(
      { order_id: order.orderId, scope: scopeKey(scope), cause: order.cause, in_force: inForce },
      'A freeze was ordered.',
    );
    hurry();
    if (!inForce) return { inFlight: [] };
    inFlightCalls.cancel(scope, frozenError(order));
    store.replicas.hint(FREEZES);
    const wait = message?.wait === undefined ? DEFAULT_WAIT_MS : durationMs(message.wait);
    const [left, elsewhere] = await Promise.all([
      inFlightCalls.settle(scope, wait),
      settledElsewhere(store, scope, wait),
    ]);
    return { inFlight: [...left.flatMap(toInFlight), ...elsewhere] };
  };
}

/** Waits until the other replicas have nothing of the scope under way, `waitMs` at most; lists what they have. */
async function settledElsewhere(store: GatewayStore, scope: FreezeScope, waitMs: number) {
  if (!store.replicas.shared) return [];
  const until = performance.now() + waitMs;
  for (;;) {
    const under = await inFlightCallRows(store.db, scope);
    const calls = under.filter(({ owner }) => owner !== store.replicas.id);
    const left = until - performance.now();
    if (calls.length === 0 || left <= 0) {
      return calls.map((call) => ({
        ...keyOf(call),
        target: call.tool,
        startTime: timestampFromDate(call.started_at),
      }));
    }
    await sleep(Math.min(LOOK_MS, left));
  }
}

function toOrder(message: FreezeOrderMessage | undefined, now: Date): FreezeOrder {
  const cause = CAUSES[message?.cause ?? 0];
  if (message === undefined || cause === undefined) {
    throw new InvalidRequestError('ORDER_REQUIRED', 'order and its cause are required.', {
      field: 'order',
    });
  }
  const { orderId, scope, reason, orderedBy, orderTime, retention } = message;
  return {
    orderId,
    scope: toScope(scope),
    cause,
    reason,
    orderedBy,
    orderedAt: orderTime === undefined ? now : timestampDate(orderTime),
    retention: RETENTIONS[retention] ?? null,
  };
}

function toScope(scope: Scope | undefined): FreezeScope {
  switch (scope?.kind.case) {
    case 'run':
      return { tenant: scope.kind.value.tenant, runId: scope.kind.value.runId };
    case 'agent': {
      const { tenant, runId, agentInstance } = scope.kind.value;
      return { tenant, runId, agentInstance };
    }
    case 'tenant':
      return { tenant: scope.kind.value };
    case 'everything':
      return {};
    default:
      throw new InvalidRequestError('SCOPE_REQUIRED', 'order.scope is required.', {
        field: 'order.scope',
      });
  }
}

/** What has not begun by now never will: its turn ends at the freeze. */
function toInFlight({ key, tool, startedAt }: InFlightCall) {
  if (startedAt === undefined) return [];
  return [{ ...key, target: tool, startTime: timestampFromDate(startedAt) }];
}

function reused(): InvalidRequestError {
  return new InvalidRequestError(
    'REQUEST_ID_REUSED',
    'order.order_id was used before for another scope.',
    { field: 'order.order_id' },
  );
}
