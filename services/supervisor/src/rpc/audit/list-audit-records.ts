import { type Timestamp, timestampDate } from '@bufbuild/protobuf/wkt';
import type { AuditService } from '@writ/contracts/writ/audit/v1/audit_service_pb';
import { InvalidRequestError } from '@writ/kernel';
import { type Handler, requirePerson } from '@writ/rpc';
import { listRecords } from '../../app/audit/read-audit.ts';
import type { SupervisorContext } from '../../context.ts';
import { AUDIT_KINDS } from '../../store/audit.ts';
import { auditRecordMessage } from '../../wire/audit.ts';
import { pageNumber, readPage } from '../../wire/page-token.ts';

/**
 * ListAuditRecords: the records of a tenant in the order of its chain, including all that were committed before the
 * call (SV-8, SYS-6).
 *
 * @throws InvalidRequestError INVALID_FIELD for a kind that does not exist
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

/** An auditor must not take a misspelt kind for a chain without such records. */
function assertKind(kind: string): void {
  const kinds: readonly string[] = AUDIT_KINDS;
  if (kind === '' || kinds.includes(kind)) return;
  throw new InvalidRequestError(
    'INVALID_FIELD',
    `kind: ${JSON.stringify(kind)} is not a kind of audit record; the kinds are ${kinds.join(', ')}.`,
    { field: 'kind' },
  );
}

function dateOf(time: Timestamp | undefined): Date | undefined {
  return time === undefined ? undefined : timestampDate(time);
}
