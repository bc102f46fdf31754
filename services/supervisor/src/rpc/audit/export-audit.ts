import type { AuditService } from '@writ/contracts/writ/audit/v1/audit_service_pb';
import { type Handler, requirePerson } from '@writ/rpc';
import { exportChain } from '../../app/audit/read-audit.ts';
import type { SupervisorContext } from '../../context.ts';
import { auditRecordMessage, checkpointMessage } from '../../wire/audit.ts';

/**
 * ExportAudit: the current chain of a tenant, with its checkpoints in order and a signed head at the end, for `writ
 * audit verify` (SV-8, SYS-6).
 * @throws UnavailableError AUDIT_CHAIN_LAGGING; InvalidRequestError AUDIT_RECORD_NOT_FOUND; DataLossError
 *   AUDIT_CHAIN_ROLLED_BACK
 */
export function exportAudit(
  context: SupervisorContext,
): Handler<typeof AuditService.method.exportAudit> {
  return async function* ({ afterSequence }, call) {
    const { tenant } = requirePerson(call);
    for await (const each of exportChain(context, tenant, Number(afterSequence), call.signal)) {
      yield each.case === 'record'
        ? { entry: { case: each.case, value: auditRecordMessage(each.record) } }
        : { entry: { case: each.case, value: checkpointMessage(each.checkpoint) } };
    }
  };
}
