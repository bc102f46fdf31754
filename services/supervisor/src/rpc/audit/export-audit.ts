import type { AuditService } from '@writ/contracts/writ/audit/v1/audit_service_pb';
import { InvalidRequestError } from '@writ/kernel';
import { type Handler, requirePerson } from '@writ/rpc';
import { signChain } from '../../app/audit/audit-chainer.ts';
import { awaitLinked } from '../../app/audit/await-linked.ts';
import type { SupervisorContext } from '../../context.ts';
import { checkpointsOf } from '../../store/audit-chain/checkpoints.ts';
import { readChain } from '../../store/audit-chain/read-chain.ts';
import { auditRecordMessage, checkpointMessage } from '../../wire/audit.ts';

const PAGE = 500;

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
    const { store, signer, clock, chainGuard } = context;
    await awaitLinked(context, tenant, call.signal);
    const end = await chainGuard.readEnd(tenant);
    let after = Number(afterSequence);
    if (after > end.sequence) throw noSuchRecord(after, end.sequence);
    const filters = {
      tenant,
      runId: '',
      instance: '',
      kind: '',
      since: undefined,
      until: undefined,
    };
    while (after < end.sequence) {
      call.signal.throwIfAborted();
      const limit = Math.min(PAGE, end.sequence - after);
      const page = await readChain(store.db, filters, after, limit);
      const upTo = page.at(-1)?.sequence ?? end.sequence;
      // Later checkpoints are not covered by the head.
      const signed = await checkpointsOf(store.db, tenant, after, Math.min(upTo, end.signed_count));
      for (const row of page) {
        yield { entry: { case: 'record', value: auditRecordMessage(row) } };
        if (signed[0]?.count !== row.sequence) continue;
        yield { entry: { case: 'checkpoint', value: checkpointMessage(signed[0]) } };
        signed.shift();
      }
      after = upTo;
    }
    const signed = await signChain(signer, end, true);
    const head = { count: end.sequence, signed, signed_at: clock.now() };
    yield { entry: { case: 'head', value: checkpointMessage(head) } };
  };
}

function noSuchRecord(after: number, last: number): InvalidRequestError {
  return new InvalidRequestError(
    'AUDIT_RECORD_NOT_FOUND',
    `after_sequence ${after} is beyond the last record of the chain, ${last}.`,
    { field: 'after_sequence', last: String(last) },
  );
}
