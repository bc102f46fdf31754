import type { MessageInitShape } from '@bufbuild/protobuf';
import { durationFromMs, timestampFromDate } from '@bufbuild/protobuf/wkt';
import { FreezeCause, type FreezeOrderSchema } from '@writ/contracts/writ/control/v1/freeze_pb';
import type { RunKey } from '@writ/kernel';
import type { Halt } from '../domain/halt/halt.ts';
import { scopeMessage } from './halt.ts';
import { retentionMessage } from './supervision.ts';

/** An order to stop a run, or one agent of it, for good at the meter and the gateway (SUP-8). */
export interface FreezeOrder extends RunKey {
  /** Left out when the whole run is over. */
  readonly instance?: string;
  /** The same order again changes nothing. */
  readonly orderId: string;
  /** One sentence for whoever is refused. */
  readonly reason: string;
  readonly at: Date;
  /** What becomes of recorded payloads; left out while the run goes on. */
  readonly retention?: string;
}

/** How long a freeze waits for calls in flight before it answers. */
const WAIT_MS = 1_000;

/** The contract's form of an order that ends a run or an agent. */
export function freezeMessage(order: FreezeOrder): MessageInitShape<typeof FreezeOrderSchema> {
  return {
    orderId: order.orderId,
    scope: { kind: scopeOf(order) },
    cause: FreezeCause.END,
    reason: order.reason,
    orderedBy: 'supervisor',
    orderTime: timestampFromDate(order.at),
    ...(order.retention !== undefined && { retention: retentionMessage(order.retention) }),
    wait: durationFromMs(WAIT_MS),
  };
}

/** The contract's form of a halt as the meter and the gateway enforce it, under its own id (SV-9). */
export function haltFreezeMessage(halt: Halt): MessageInitShape<typeof FreezeOrderSchema> {
  return {
    orderId: halt.haltId,
    scope: { kind: scopeMessage(halt.scope) },
    cause: FreezeCause.HALT,
    reason: halt.reason,
    orderedBy: halt.orderedBy,
    orderTime: timestampFromDate(halt.orderedAt),
    wait: durationFromMs(WAIT_MS),
  };
}

function scopeOf({ tenant, runId, instance }: FreezeOrder) {
  return instance === undefined
    ? ({ case: 'run', value: { tenant, runId } } as const)
    : ({ case: 'agent', value: { tenant, runId, agentInstance: instance } } as const);
}
