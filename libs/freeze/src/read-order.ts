import { timestampDate } from '@bufbuild/protobuf/wkt';
import {
  FreezeCause as ContractCause,
  type FreezeOrder as FreezeOrderMessage,
  type Scope as ScopeMessage,
} from '@writ/contracts/writ/control/v1/freeze_pb';
import { HistoryRetention as ContractRetention } from '@writ/contracts/writ/supervision/v1/supervision_pb';
import { HistoryRetention, InvalidRequestError, type Scope } from '@writ/kernel';
import type { FreezeCause, FreezeOrder } from './order.ts';

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
 * Reads a FreezeOrder message; an order without `order_time` gets the time `now`.
 * @throws InvalidRequestError ORDER_REQUIRED, SCOPE_REQUIRED
 */
export function readFreezeOrder(message: FreezeOrderMessage | undefined, now: Date): FreezeOrder {
  const cause = CAUSES[message?.cause ?? 0];
  if (message === undefined || cause === undefined) {
    throw new InvalidRequestError('ORDER_REQUIRED', 'order and its cause are required.', {
      field: 'order',
    });
  }
  const { orderId, scope, reason, orderedBy, orderTime, retention } = message;
  return {
    orderId,
    scope: readScope(scope),
    cause,
    reason,
    orderedBy,
    orderedAt: orderTime === undefined ? now : timestampDate(orderTime),
    retention: RETENTIONS[retention] ?? null,
  };
}

function readScope(scope: ScopeMessage | undefined): Scope {
  switch (scope?.kind.case) {
    case 'run':
      return { tenant: scope.kind.value.tenant, runId: scope.kind.value.runId };
    case 'agent': {
      const { tenant, runId, agentInstance } = scope.kind.value;
      return { tenant, runId, instance: agentInstance };
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
