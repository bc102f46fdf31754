import { type Timestamp, timestampDate } from '@bufbuild/protobuf/wkt';
import type { AuditService } from '@writ/contracts/writ/audit/v1/audit_service_pb';
import { type Handler, requirePerson } from '@writ/rpc';
import { assertKind, listRecords } from '../../app/audit/read-audit.ts';
import type { SupervisorContext } from '../../context.ts';
import { auditRecordMessage } from '../../wire/audit.ts';
import { pageNumber, readPage } from '../../wire/page-token.ts';

/**
 * ListAuditRecords: the records of a tenant in the order of its chain, including all that were committed before the
 * call (SV-8, SYS-6).
 * @throws InvalidRequestError INVALID_FIELD for a kind that does not exist, INVALID_PAGE_TOKEN; UnavailableError
 *   AUDIT_CHAIN_LAGGING
 */
export function listAuditRecords(
  context: SupervisorContext,
): Handler<typeof AuditService.method.listAuditRecords> {
  return async (request, call) => {
    const { runId, agentInstance: instance, kind, afterSequence } = request;
    assertKind(kind);
    const since = dateOf(request.startTime);
    const until = dateOf(request.endTime);
    const filters = { tenant: requirePerson(call).tenant, runId, instance, kind, since, until };
    const { page, nextPageToken } = await readPage(request, {
      defaultSize: 100,
      filters: {
        ...filters,
        since: since?.toISOString() ?? '',
        until: until?.toISOString() ?? '',
        after: String(afterSequence),
      },
      parts: 1,
      read: ([last] = [], limit) => {
        const after = last === undefined ? Number(afterSequence) : pageNumber(last);
        const isFirst = last === undefined;
        return listRecords(context, filters, { after, isFirst, limit }, call.signal);
      },
      positionOf: ({ sequence }) => [String(sequence)],
    });
    return { records: page.map(auditRecordMessage), nextPageToken };
  };
}

function dateOf(time: Timestamp | undefined): Date | undefined {
  return time === undefined ? undefined : timestampDate(time);
}
