import type { MessageInitShape } from '@bufbuild/protobuf';
import { durationFromMs, timestampFromDate } from '@bufbuild/protobuf/wkt';
import { FreezeCause, type FreezeOrderSchema } from '@writ/contracts/writ/control/v1/freeze_pb';
import type { RunKey } from '@writ/kernel';
import type { Halt } from '../domain/halt/halt.ts';
import { scopeMessage } from './halt.ts';
import { retentionMessage } from './supervision.ts';

/** An order to freeze an ending run, or one ended agent of a run, at the meter and the gateway (SUP-8). */
export interface EndFreeze extends RunKey {
  /** Omitted for the whole run. */
  readonly instance?: string;
  /** A repeated order id has no effect. */
  readonly orderId: string;
  /** One sentence for rejected callers. */
  readonly reason: string;
  readonly at: Date;
  /** The retention of recorded payloads; omitted while the run continues. */
  readonly retention?: string;
}

/** How long a freeze waits for calls in flight before it answers, ms. */
const WAIT_MS = 1_000;

/** Converts a freeze order. */
export function freezeMessage(order: EndFreeze): MessageInitShape<typeof FreezeOrderSchema> {
  return {
    orderId: order.orderId,
    scope: { kind: scopeMessage(order) },
    cause: FreezeCause.END,
    reason: order.reason,
    orderedBy: 'supervisor',
    orderTime: timestampFromDate(order.at),
    ...(order.retention !== undefined && { retention: retentionMessage(order.retention) }),
    wait: durationFromMs(WAIT_MS),
  };
}

/** Converts a halt to the freeze order that the meter and the gateway enforce, with the id of the halt (SV-9). */
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
