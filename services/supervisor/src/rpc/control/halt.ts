import { toJson } from '@bufbuild/protobuf';
import {
  type ControlService,
  HaltRequestSchema,
} from '@writ/contracts/writ/control/v1/control_service_pb';
import { canonicalDigest, derivedId, UnavailableError } from '@writ/kernel';
import { type Handler, requirePerson } from '@writ/rpc';
import { waitForHalt } from '../../app/halt/await-halt.ts';
import { haltFacts } from '../../app/halt/halt-facts.ts';
import { haltOrderOf } from '../../app/halt/place-halt-order.ts';
import type { SupervisorContext } from '../../context.ts';
import type { HaltScope } from '../../domain/halt/halt.ts';
import { assertMayHalt } from '../../domain/halt/halt-rights.ts';
import { loadAgent } from '../../store/agent/agents.ts';
import { appendAudit } from '../../store/audit.ts';
import { findHalt, type HaltRow, insertHalt, newHalt } from '../../store/halt/halts.ts';
import { hurryOrder, placeOrder } from '../../store/orders.ts';
import { rememberRequest } from '../../store/requests.ts';
import { loadRun } from '../../store/run/runs.ts';
import type { SupervisorTransaction } from '../../store/supervisor-store.ts';
import { haltMessage, scopeFrom } from '../../wire/halt.ts';
import { personOf } from './person.ts';

/**
 * Halt: from the commit on nothing in the scope may act here; acknowledged once the meter and the
 * gateway refuse, too. Else it stays in force, is driven on, and a repeat asks again (SV-9).
 * @throws UnavailableError HALT_PENDING naming who did not answer; PermissionDeniedError
 *   OPERATOR_REQUIRED; NotFoundError RUN_NOT_FOUND, AGENT_NOT_FOUND; InvalidRequestError
 *   REQUEST_ID_REUSED
 */
export function halt(context: SupervisorContext): Handler<typeof ControlService.method.halt> {
  return async (request, call) => {
    const person = requirePerson(call);
    const scope = scopeFrom(request.scope);
    assertMayHalt(personOf(person), scope);
    const { requestId, reason, endRuns } = request;
    const haltId = derivedId('hlt', person.tenant, person.subject, requestId);
    await context.store.transaction(async (trx) => {
      const at = context.clock.now();
      const asked = {
        tenant: person.tenant,
        subject: person.subject,
        method: 'writ.control.v1.ControlService/Halt',
        requestId,
        digest: canonicalDigest(toJson(HaltRequestSchema, request)),
      };
      if (!(await rememberRequest(trx, asked, at))) {
        const known = await findHalt(trx, haltId);
        if (known !== undefined) await hurryOrder(trx, haltOrderOf(known).orderId, at);
        return;
      }
      await assertExists(trx, scope);
      const { subject: orderedBy, tenant: orderedFor } = person;
      const row = newHalt({ haltId, scope, reason, endRuns, orderedBy, orderedFor, at });
      await record(trx, row, at);
    });
    const row = await waitForHalt(context, haltId, call, ({ state }) => state !== 'pending');
    if (row.state === 'pending') throw stillPending(row);
    return { halt: haltMessage(row) };
  };
}

async function record(trx: SupervisorTransaction, row: HaltRow, at: Date): Promise<void> {
  await insertHalt(trx, row);
  await placeOrder(trx, haltOrderOf(row), at);
  const chains = new Set([row.ordered_for, row.tenant ?? row.ordered_for]);
  for (const tenant of chains) {
    const place = tenant === row.tenant ? placeOf(row) : {};
    await appendAudit(trx, { tenant, kind: 'halt', ...place, facts: haltFacts(row) }, at);
  }
}

function placeOf({ run_id, instance }: HaltRow) {
  return { runId: run_id ?? undefined, instance: instance ?? undefined };
}

/** @throws NotFoundError RUN_NOT_FOUND, AGENT_NOT_FOUND */
async function assertExists(
  trx: SupervisorTransaction,
  { tenant, runId, instance }: HaltScope,
): Promise<void> {
  if (tenant === undefined || runId === undefined) return;
  await loadRun(trx, { tenant, runId });
  if (instance !== undefined) await loadAgent(trx, { tenant, runId, instance });
}

function stillPending(row: HaltRow): UnavailableError {
  const missing = [
    ...(row.meter_at === null ? ['execution-meter'] : []),
    ...(row.gateway_at === null ? ['tool-gateway'] : []),
  ];
  const waiting = missing.length === 0 ? ['supervisor'] : missing;
  const who = waiting.join(' and ');
  return new UnavailableError(
    'HALT_PENDING',
    missing.length === 0
      ? `Halt ${row.halt_id} is in force, but its agents are still being parked; repeat the call.`
      : `Halt ${row.halt_id} is in force, but ${who} did not answer yet; it is being asked again, and a repeat of the call tells when it has.`,
    { halt_id: row.halt_id, waiting_for: waiting.join(',') },
  );
}
