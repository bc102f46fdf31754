import { timestampFromDate } from '@bufbuild/protobuf/wkt';
import type { AgentWorkerService } from '@writ/contracts/writ/worker/v1/agent_worker_service_pb';
import { assertServesTenant } from '@writ/identity';
import type { Handler } from '@writ/rpc';
import type { Dependencies } from '../app/agents/dependencies.ts';
import { listLogEntries as readLog } from '../app/agents/list-log-entries.ts';

/** Lists the log entries of a run with their content, page by page (RT-1). */
export function listLogEntries({
  store,
}: Dependencies): Handler<typeof AgentWorkerService.method.listLogEntries> {
  return async (request, call) => {
    assertServesTenant(call.caller, request.tenant);
    const { entries, nextPageToken } = await readLog(store.db, request);
    return {
      nextPageToken,
      entries: entries.map(({ name, instance, callId, message, recordedAt, ...entry }) => ({
        agent: { name, instance },
        callId,
        message,
        fieldsJson: entry.fieldsJson,
        contentJson: entry.contentJson,
        contentOmitted: entry.isOmitted,
        recordTime: timestampFromDate(recordedAt),
      })),
    };
  };
}
