import type { MessageInitShape } from '@bufbuild/protobuf';
import { durationFromMs, timestampFromDate } from '@bufbuild/protobuf/wkt';
import { FreezeCause, type FreezeOrderSchema } from '@writ/contracts/writ/control/v1/freeze_pb';
import type { RunKey } from '../../store/change/changes.ts';
import { retentionMessage } from './supervision.ts';

/** An order to stop a run for good at the meter and the gateway (SUP-8). */
export interface FreezeOrder extends RunKey {
  /** The same order again changes nothing. */
  readonly orderId: string;
  /** One sentence for whoever is refused. */
  readonly reason: string;
  readonly at: Date;
  /** What becomes of recorded payloads. */
  readonly retention: string;
}

/** How long a freeze waits for calls in flight before it answers. */
const WAIT_MS = 1_000;

/** The contract's form of an order that ends a run. */
export function freezeMessage(order: FreezeOrder): MessageInitShape<typeof FreezeOrderSchema> {
  return {
    orderId: order.orderId,
    scope: { kind: { case: 'run', value: { tenant: order.tenant, runId: order.runId } } },
    cause: FreezeCause.END,
    reason: order.reason,
    orderedBy: 'supervisor',
    orderTime: timestampFromDate(order.at),
    retention: retentionMessage(order.retention),
    wait: durationFromMs(WAIT_MS),
  };
}
