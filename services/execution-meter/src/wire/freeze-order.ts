import { timestampDate } from '@bufbuild/protobuf/wkt';
import {
  FreezeCause as ContractCause,
  type FreezeOrder,
  type Scope,
} from '@writ/contracts/writ/control/v1/freeze_pb';
import { HistoryRetention } from '@writ/contracts/writ/supervision/v1/supervision_pb';
import { InvalidRequestError } from '@writ/kernel';
import type { FreezeCause, FreezeScope } from '../domain/freeze.ts';
import type { NewFreeze } from '../store/freezes.ts';

const CAUSES: Readonly<Record<ContractCause, FreezeCause | undefined>> = {
  [ContractCause.UNSPECIFIED]: undefined,
  [ContractCause.HALT]: 'halt',
  [ContractCause.CANCEL]: 'cancel',
  [ContractCause.DEADLINE]: 'deadline',
  [ContractCause.END]: 'end',
};

/** Reads an order; validation has seen to it that it is whole. */
export function readFreezeOrder(order: FreezeOrder | undefined, now: Date): NewFreeze {
  const cause = CAUSES[order?.cause ?? ContractCause.UNSPECIFIED];
  if (order === undefined || cause === undefined) throw required('order.cause');
  const { orderId, reason, orderedBy, orderTime, retention } = order;
  return {
    freeze: { orderId, cause, reason, orderedBy },
    scope: readScope(order.scope),
    orderedAt: orderTime === undefined ? now : timestampDate(orderTime),
    purges: retention === HistoryRetention.NONE || retention === HistoryRetention.RUN,
  };
}

function readScope(scope: Scope | undefined): FreezeScope {
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
      throw required('order.scope');
  }
}

function required(field: string): InvalidRequestError {
  return new InvalidRequestError('FIELD_REQUIRED', `${field} is required.`, { field });
}
