import { DEVELOPER } from '@writ/identity';
import { canonicalDigest, derivedId, type Scope, sha256Hex, UnavailableError } from '@writ/kernel';
import type { Person } from '@writ/rpc';
import { type SupervisorContext, type Tx, transact } from '../../context.ts';
import { assertMayHalt, assertMayLift, type HaltingPerson } from '../../domain/halt/halt-rights.ts';
import type { HaltPayload } from '../../domain/order/order-payloads.ts';
import { loadAgent } from '../../store/agent/agents.ts';
import { appendAudit } from '../../store/audit/append-audit.ts';
import {
  findHalt,
  type HaltRow,
  insertHalt,
  loadHalt,
  newHalt,
  saveHalt,
  scopeOf,
} from '../../store/halt/halts.ts';
import { stoppedTenants } from '../../store/halt/runs-in-scope.ts';
import { makeOrderDue, type NewOrder, placeOrder } from '../../store/orders.ts';
import { rememberRequest } from '../../store/requests.ts';
import { loadRun } from '../../store/run/runs.ts';
import type { SupervisorTransaction } from '../../store/supervisor-store.ts';

/** One Halt request. */
export interface HaltRequest {
  readonly requestId: string;
  readonly digest: string;
  readonly scope: Scope;
  readonly reason: string;
  readonly endRuns: boolean;
}

/**
 * Records a halt and places the order that enforces it; a repeated request makes that order due. Returns the halt id.
 * @throws PermissionDeniedError OPERATOR_REQUIRED; NotFoundError RUN_NOT_FOUND, AGENT_NOT_FOUND; InvalidRequestError
 *   REQUEST_ID_REUSED
 */
export async function orderHalt(
  context: SupervisorContext,
  person: Person,
  { requestId, digest, scope, reason, endRuns }: HaltRequest,
): Promise<string> {
  const { tenant, subject } = person;
  assertMayHalt(haltingPerson(person), scope);
  const haltId = derivedId('hlt', tenant, subject, requestId);
  const work = async (tx: Tx): Promise<void> => {
    const { trx, at } = tx;
    const method = 'writ.control.v1.ControlService/Halt';
    if (!(await rememberRequest(trx, { tenant, subject, method, requestId, digest }, at))) {
      const known = await findHalt(trx, haltId);
      if (known !== undefined) await makeOrderDue(trx, orderOf(known, 'halt').orderId, at);
      return;
    }
    await assertExists(trx, scope);
    const ordered = { orderedBy: subject, orderedFor: tenant, at };
    await record(tx, newHalt({ haltId, scope, reason, endRuns, ...ordered }));
  };
  await transact(context, work, { urgent: true });
  return haltId;
}

/**
 * Places the order that lifts a halt; a repeated request makes that order due.
 * @throws NotFoundError HALT_NOT_FOUND; PermissionDeniedError OPERATOR_REQUIRED; InvalidRequestError REQUEST_ID_REUSED
 */
export async function liftHalt(
  context: SupervisorContext,
  person: Person,
  { requestId, haltId }: { readonly requestId: string; readonly haltId: string },
): Promise<void> {
  const work = async (tx: Tx): Promise<void> => {
    const { trx, at } = tx;
    const row = await loadHalt(trx, haltId);
    const owned = { haltId, scope: scopeOf(row), orderedFor: row.ordered_for };
    assertMayLift(haltingPerson(person), owned);
    const { tenant, subject } = person;
    const method = 'writ.control.v1.ControlService/Resume';
    const digest = canonicalDigest({ haltId });
    await rememberRequest(trx, { tenant, subject, method, requestId, digest }, at);
    if (row.resumed_by === null) await recordResume(tx, row, person);
    else await makeOrderDue(trx, orderOf(row, 'resume').orderId, at);
  };
  await transact(context, work, { urgent: true });
}

/**
 * Records a halt of everything, so that a recovered platform starts halted. The halt ends the open runs (BD-4).
 * Call it in the transaction that recovers the database.
 */
export async function recordRecoveryHalt(
  trx: SupervisorTransaction,
  { haltId }: { readonly haltId: string },
  at: Date,
): Promise<void> {
  if ((await findHalt(trx, haltId)) !== undefined) return;
  const reason =
    'A database was recovered; compare it with external systems before you lift this halt.';
  const ordered = { orderedBy: 'writ-recover', orderedFor: DEVELOPER.tenant, at };
  await record({ trx, at }, newHalt({ haltId, scope: {}, reason, endRuns: true, ...ordered }));
}

/** The person of a call, with the rights to halt. */
export function haltingPerson({ tenant, roles }: Person): HaltingPerson {
  return { tenant, isOperator: roles.includes('operator') };
}

/** Returns the facts of a halt for the audit record (SV-8). The reason is free text, so only its digest is included. */
export function haltFacts(halt: HaltRow) {
  return {
    halt_id: halt.halt_id,
    scope: halt.scope,
    ordered_by: halt.ordered_by,
    ordered_for: halt.ordered_for,
    end_runs: halt.end_runs,
    reason_sha256: sha256Hex(halt.reason),
  };
}

/** Returns the error for a halt that is not yet enforced in all services. */
export function haltPending(row: HaltRow): UnavailableError {
  const missing = [
    ...(row.meter_at === null ? ['execution-meter'] : []),
    ...(row.gateway_at === null ? ['tool-gateway'] : []),
  ];
  const waiting = missing.length === 0 ? ['supervisor'] : missing;
  const who = waiting.join(' and ');
  return new UnavailableError(
    'HALT_PENDING',
    missing.length === 0
      ? `Halt ${row.halt_id} is effective, but not all of its agents are parked yet; repeat the call.`
      : `Halt ${row.halt_id} is effective in the supervisor, but ${who} has not confirmed it yet; the supervisor retries. Repeat the call to wait for it.`,
    { halt_id: row.halt_id, waiting_for: waiting.join(',') },
  );
}

/** Returns the error for a halt that is not yet lifted in all services. */
export function resumePending({ halt_id }: HaltRow): UnavailableError {
  return new UnavailableError(
    'RESUME_PENDING',
    `Halt ${halt_id} is being lifted, but execution-meter or tool-gateway has not answered yet, or agents are still being resumed; repeat the call.`,
    { halt_id },
  );
}

async function record({ trx, at }: Pick<Tx, 'trx' | 'at'>, row: HaltRow): Promise<void> {
  await insertHalt(trx, row);
  await placeOrder(trx, orderOf(row, 'halt'), at);
  const chains = new Set([row.ordered_for, row.tenant ?? row.ordered_for]);
  for (const tenant of chains) {
    const place = tenant === row.tenant ? placeOf(row) : {};
    await appendAudit(trx, { tenant, kind: 'halt', ...place, facts: haltFacts(row) }, at);
  }
}

async function recordResume({ trx, at }: Tx, row: HaltRow, by: Person): Promise<void> {
  await saveHalt(trx, row.halt_id, { state: 'lifting', resumed_by: by.subject });
  await placeOrder(trx, orderOf(row, 'resume'), at);
  const facts = { ...haltFacts(row), resumed_by: by.subject };
  const stopped = row.tenant === null ? await stoppedTenants(trx, row.ordered_at) : [row.tenant];
  for (const tenant of new Set([row.ordered_for, by.tenant, ...stopped])) {
    await appendAudit(trx, { tenant, kind: 'resume', facts }, at);
  }
}

/** Returns an order of a halt. The order belongs to no run, so that it does not wait for the orders of a run (SV-9). */
function orderOf({ halt_id: haltId, tenant }: HaltRow, kind: 'halt' | 'resume'): NewOrder {
  const payload: HaltPayload = { haltId };
  return {
    orderId: derivedId('ord', haltId, kind),
    kind,
    tenant: tenant ?? '',
    runId: '',
    payload,
  };
}

function placeOf({ run_id, instance }: HaltRow) {
  return { runId: run_id ?? undefined, instance: instance ?? undefined };
}

/** Checks that the run and the agent of a scope exist. @throws NotFoundError RUN_NOT_FOUND, AGENT_NOT_FOUND */
async function assertExists(
  trx: SupervisorTransaction,
  { tenant, runId, instance }: Scope,
): Promise<void> {
  if (tenant === undefined || runId === undefined) return;
  await loadRun(trx, { tenant, runId });
  if (instance !== undefined) await loadAgent(trx, { tenant, runId, instance });
}
