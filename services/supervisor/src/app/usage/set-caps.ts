import type { LevelBalance } from '@writ/contracts/writ/meter/v1/tab_pb';
import type { SetCapsRequest } from '@writ/contracts/writ/usage/v1/usage_service_pb';
import { canonicalDigest, derivedId, type ExecutionBudget } from '@writ/kernel';
import type { Person } from '@writ/rpc';
import { type SupervisorContext, type Tx, transact } from '../../context.ts';
import { budgetToJson } from '../../domain/manifest/manifest-json.ts';
import { cappedTenant } from '../../domain/usage/usage-rights.ts';
import { type AuditEntry, appendAudit } from '../../store/audit/append-audit.ts';
import { type PersonalRequest, rememberRequest, requestsOf } from '../../store/requests.ts';
import { budgetFrom, levelName } from '../../wire/budget.ts';
import { assertBudgetChangeable, recordRunCaps } from './run-caps.ts';

const METHOD = 'writ.usage.v1.UsageService/SetCaps';

/**
 * Sets the caps of a run in progress, a session or a tenant: records the change and its author in the audit record,
 * then lets the meter enforce it. If the meter does not answer, a repeat of the request completes the change (EM-3,
 * SV-8).
 * @throws PermissionDeniedError OPERATOR_REQUIRED; InvalidRequestError REQUEST_ID_REUSED; NotFoundError RUN_NOT_FOUND;
 *   PreconditionError RUN_ENDED; UnavailableError AGENT_NOT_DELIVERED; the errors of the meter
 */
export async function setCaps(
  context: SupervisorContext,
  person: Person,
  message: SetCapsRequest,
): Promise<LevelBalance | undefined> {
  const { requestId, level, sessionId, runId, caps: given } = message;
  const name = levelName(level);
  const isOfTenant = name === 'tenant_day' || name === 'tenant_month';
  const tenant = cappedTenant(person, message.tenant, !isOfTenant);
  const budget = given && budgetFrom(given, 'caps');
  const { subject } = person;
  const facts = {
    ordered_by: subject,
    ordered_for: person.tenant,
    level: name,
    session_id: sessionId,
    caps: budget === undefined ? 'removed' : budgetToJson(budget),
  };
  const digest = canonicalDigest({ tenant, runId, ...facts });
  const request = { tenant: person.tenant, subject, method: METHOD, requestId, digest };
  const change = { tenant, runId, request, facts };
  const touched = {
    ...(runId !== '' && { run: { tenant, runId } }),
    resource: requestsOf(request),
  };
  await transact(context, (tx) => recordRequest(tx, change), touched);
  const callId = derivedId('req', person.tenant, subject, METHOD, requestId);
  const setInMeter = () =>
    context.peers.executionMeter.setCaps({
      requestId: callId,
      tenant,
      level,
      sessionId,
      runId,
      ...(given && { caps: given }),
      setBy: subject,
    });
  let { balance } = await setInMeter();
  if (runId === '') return balance;
  // The meter ignores a repeated request, so its response can contain the caps of a later request. The caps are read
  // again after they are recorded, because requests may be recorded in another order than the meter executed them.
  let recorded: string | undefined;
  while (balance !== undefined) {
    const enforced = budgetFrom(balance.limit, 'balance.limit');
    const text = budgetToJson(enforced);
    if (text === recorded) break;
    await transact(context, (tx) => recordEnforced(tx, change, callId, enforced), touched);
    recorded = text;
    ({ balance } = await setInMeter());
  }
  return balance;
}

interface CapChange {
  readonly tenant: string;
  /** Set for the level of a run; empty for all other levels. */
  readonly runId: string;
  readonly request: PersonalRequest;
  readonly facts: AuditEntry['facts'];
}

async function recordRequest({ trx, at }: Tx, change: CapChange): Promise<void> {
  const { tenant, runId, request, facts } = change;
  if (!(await rememberRequest(trx, request, at))) return;
  if (runId !== '') await assertBudgetChangeable(trx, { tenant, runId });
  // The record is also written to the chain of the tenant of the person who sets the caps, if that is another tenant.
  for (const chain of new Set([tenant, request.tenant])) {
    const entry = {
      tenant: chain,
      kind: 'set_caps',
      runId,
      facts: { ...facts, of: tenant },
    } as const;
    await appendAudit(trx, entry, at);
  }
}

/** Records caps of a run that the meter enforces; emits one event for each request. */
async function recordEnforced(
  { trx, at, context }: Tx,
  { tenant, runId, request }: CapChange,
  callId: string,
  caps: ExecutionBudget,
): Promise<void> {
  const scope = await recordRunCaps(trx, { tenant, runId }, caps);
  const enforced = { ...request, method: `${METHOD}/enforced` };
  const isFirst = await rememberRequest(trx, enforced, at);
  if (scope === undefined || !isFirst) return;
  await context.events.budgetChanged(trx, { ...scope, callId }, at);
}
