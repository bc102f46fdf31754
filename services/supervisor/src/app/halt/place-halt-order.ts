import { derivedId } from '@writ/kernel';
import type { HaltPayload } from '../../domain/order/order-payloads.ts';
import type { HaltRow } from '../../store/halt/halts.ts';
import type { NewOrder } from '../../store/orders.ts';

/** The order that enforces a halt everywhere (SV-9). */
export function haltOrderOf(halt: HaltRow): NewOrder {
  return orderOf(halt, 'halt');
}

/** The order that lifts it. */
export function resumeOrderOf(halt: HaltRow): NewOrder {
  return orderOf(halt, 'resume');
}

function orderOf({ halt_id: haltId, tenant }: HaltRow, kind: 'halt' | 'resume'): NewOrder {
  const payload: HaltPayload = { haltId };
  // No run: it may have none, and a halt waits for no order of a run.
  return {
    orderId: derivedId('ord', haltId, kind),
    kind,
    tenant: tenant ?? '',
    runId: '',
    payload,
  };
}
