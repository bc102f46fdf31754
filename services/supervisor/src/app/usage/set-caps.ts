import type { LevelBalance } from '@writ/contracts/writ/meter/v1/tab_pb';
import type { SetCapsRequest } from '@writ/contracts/writ/usage/v1/usage_service_pb';
import { canonicalDigest, derivedId } from '@writ/kernel';
import type { Person } from '@writ/rpc';
import { type SupervisorContext, transact } from '../../context.ts';
import { budgetToJson } from '../../domain/manifest/manifest-json.ts';
import { cappedTenant } from '../../domain/usage/usage-rights.ts';
import { appendAudit } from '../../store/audit.ts';
import { rememberRequest } from '../../store/requests.ts';
import { budgetFrom, levelName } from '../../wire/budget.ts';

const METHOD = 'writ.usage.v1.UsageService/SetCaps';

/**
 * Sets the caps of a session or tenant: records the order and who gave it in the audit record, then lets the meter
 * enforce it. When the meter does not answer, a repeat of the request completes it (EM-3, SV-8).
 * @throws PermissionDeniedError OPERATOR_REQUIRED; InvalidRequestError REQUEST_ID_REUSED; what the meter throws
 */
export async function setCaps(
  context: SupervisorContext,
  person: Person,
  { requestId, tenant: named, level, sessionId, caps: given }: SetCapsRequest,
): Promise<LevelBalance | undefined> {
  const tenant = cappedTenant(person, named, levelName(level) === 'session');
  const caps = given && budgetToJson(budgetFrom(given, 'caps'));
  const { subject } = person;
  const facts = {
    ordered_by: subject,
    ordered_for: person.tenant,
    level: levelName(level),
    session_id: sessionId,
    caps: caps ?? 'removed',
  };
  const digest = canonicalDigest({ tenant, ...facts });
  await transact(context, async ({ trx, at }) => {
    const request = { tenant: person.tenant, subject, method: METHOD, requestId, digest };
    if (!(await rememberRequest(trx, request, at))) return;
    // The tenant of the operator learns of it, too.
    for (const chain of new Set([tenant, person.tenant])) {
      await appendAudit(
        trx,
        { tenant: chain, kind: 'set_caps', facts: { ...facts, of: tenant } },
        at,
      );
    }
  });
  const { balance } = await context.peers.executionMeter.setCaps({
    requestId: derivedId('req', person.tenant, subject, METHOD, requestId),
    tenant,
    level,
    sessionId,
    ...(given && { caps: given }),
    setBy: subject,
  });
  return balance;
}
