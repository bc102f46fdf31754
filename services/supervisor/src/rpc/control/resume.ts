import type { ControlService } from '@writ/contracts/writ/control/v1/control_service_pb';
import { canonicalDigest, UnavailableError } from '@writ/kernel';
import { type Handler, requirePerson } from '@writ/rpc';
import { waitForHalt } from '../../app/halt/await-halt.ts';
import { haltFacts } from '../../app/halt/halt-facts.ts';
import { resumeOrderOf } from '../../app/halt/place-halt-order.ts';
import type { SupervisorContext } from '../../context.ts';
import { assertMayLift } from '../../domain/halt/halt-rights.ts';
import { appendAudit } from '../../store/audit.ts';
import { type HaltRow, loadHalt, saveHalt, scopeOf } from '../../store/halt/halts.ts';
import { busyTenants } from '../../store/halt/runs-in-scope.ts';
import { hurryOrder, placeOrder } from '../../store/orders.ts';
import { rememberRequest } from '../../store/requests.ts';
import type { SupervisorTransaction } from '../../store/supervisor-store.ts';
import { haltMessage } from '../../wire/halt.ts';
import { personOf } from './person.ts';

/**
 * Resume: lifts one halt and no other that freezes the same; answers once it is lifted everywhere.
 * What was lifted stays lifted (SV-9).
 * @throws NotFoundError HALT_NOT_FOUND; PermissionDeniedError OPERATOR_REQUIRED; UnavailableError
 *   RESUME_PENDING; InvalidRequestError REQUEST_ID_REUSED
 */
export function resume(context: SupervisorContext): Handler<typeof ControlService.method.resume> {
  return async ({ requestId, haltId }, call) => {
    const person = requirePerson(call);
    await context.store.transaction(async (trx) => {
      const at = context.clock.now();
      const row = await loadHalt(trx, haltId);
      assertMayLift(personOf(person), { haltId, scope: scopeOf(row), orderedFor: row.ordered_for });
      const { tenant, subject } = person;
      const method = 'writ.control.v1.ControlService/Resume';
      const digest = canonicalDigest({ haltId });
      await rememberRequest(trx, { tenant, subject, method, requestId, digest }, at);
      if (row.resumed_by === null) await order(trx, row, person, at);
      else await hurryOrder(trx, resumeOrderOf(row).orderId, at);
    });
    const row = await waitForHalt(context, haltId, call, ({ state }) => state === 'lifted');
    if (row.state !== 'lifted') throw stillPending(row);
    return { halt: haltMessage(row) };
  };
}

async function order(
  trx: SupervisorTransaction,
  row: HaltRow,
  by: { readonly tenant: string; readonly subject: string },
  at: Date,
): Promise<void> {
  await saveHalt(trx, row.halt_id, { state: 'lifting', resumed_by: by.subject });
  await placeOrder(trx, resumeOrderOf(row), at);
  const facts = { ...haltFacts(row), resumed_by: by.subject };
  const stopped = row.tenant === null ? await busyTenants(trx) : [row.tenant];
  for (const tenant of new Set([row.ordered_for, by.tenant, ...stopped])) {
    await appendAudit(trx, { tenant, kind: 'resume', facts }, at);
  }
}

function stillPending({ halt_id }: HaltRow): UnavailableError {
  return new UnavailableError(
    'RESUME_PENDING',
    `Halt ${halt_id} is being lifted, but execution-meter or tool-gateway did not answer yet; repeat the call.`,
    { halt_id },
  );
}
