import type { AgentWorkerService } from '@writ/contracts/writ/worker/v1/agent_worker_service_pb';
import { assertServesTenant } from '@writ/identity';
import type { Handler } from '@writ/rpc';

/** Returns no entries, because agent-proxy stores no log of external agents. */
export function listLogEntries(): Handler<typeof AgentWorkerService.method.listLogEntries> {
  return async ({ tenant }, { caller }) => {
    assertServesTenant(caller, tenant);
    return { entries: [], nextPageToken: '' };
  };
}
