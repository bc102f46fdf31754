import { type Timestamp, timestampDate } from '@bufbuild/protobuf/wkt';
import type { AuditService } from '@writ/contracts/writ/audit/v1/audit_service_pb';
import { type Handler, requirePerson } from '@writ/rpc';
import { awaitLinked } from '../../app/audit/await-linked.ts';
import type { SupervisorContext } from '../../context.ts';
import { readChain } from '../../store/audit-chain/read-chain.ts';
import { auditRecordMessage } from '../../wire/audit.ts';
import { pageNumber, pageToken, readPageToken } from '../../wire/page-token.ts';

const DEFAULT_PAGE = 100;

/**
 * ListAuditRecords: the records of a tenant in the order of its chain, including all that were committed before the
 * call (SV-8, SYS-6).
 */
export function listAuditRecords(
  context: SupervisorContext,
): Handler<typeof AuditService.method.listAuditRecords> {
  return async (request, call) => {
    const { tenant } = requirePerson(call);
    const { runId, agentInstance: instance, kind } = request;
    const since = dateOf(request.startTime);
    const until = dateOf(request.endTime);
    const filters = { tenant, runId, instance, kind, since, until };
    const asked = {
      ...filters,
      since: since?.toISOString() ?? '',
      until: until?.toISOString() ?? '',
      after: String(request.afterSequence),
    };
    const limit = request.pageSize === 0 ? DEFAULT_PAGE : request.pageSize;
    const [last] = readPageToken(request.pageToken, asked, 1) ?? [];
    if (last === undefined) await awaitLinked(context, tenant, call.signal);
    const after = last === undefined ? Number(request.afterSequence) : pageNumber(last);
    const rows = await readChain(context.store.db, filters, after, limit + 1);
    const page = rows.slice(0, limit);
    const end = page.at(-1);
    return {
      records: page.map(auditRecordMessage),
      nextPageToken:
        rows.length > limit && end !== undefined ? pageToken([String(end.sequence)], asked) : '',
    };
  };
}

function dateOf(time: Timestamp | undefined): Date | undefined {
  return time === undefined ? undefined : timestampDate(time);
}
