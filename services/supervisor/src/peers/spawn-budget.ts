import { timestampFromDate } from '@bufbuild/protobuf/wkt';
import { SpawnBudgetService } from '@writ/contracts/writ/spawn/v1/spawn_budget_service_pb';
import { createRpcClient, type RpcClientOptions } from '@writ/rpc';
import { spawnBudgetMessage } from '../rpc/messages/budget.ts';
import { priorityMessage, rootRefOf } from '../rpc/messages/supervision.ts';
import type { RunKey } from '../store/change/changes.ts';
import type { RunRow } from '../store/run/runs.ts';

/** The keeper of headcounts, as orders need it: every call is idempotent, and they try again by themselves. */
export interface SpawnBudgetPeer {
  /** Opens a run's pool with the root in its first slot; returns the root's slot grant. */
  openPool(requestId: string, run: RunRow): Promise<string>;
  /** Releases every slot of a run that is over. */
  closePool(requestId: string, run: RunKey): Promise<void>;
  close(): void;
}

/** Calls spawn-budget over gRPC. */
export function createSpawnBudgetPeer(options: RpcClientOptions): SpawnBudgetPeer {
  const client = createRpcClient(SpawnBudgetService, options);
  return {
    async openPool(requestId, run) {
      const { slot } = await client.openPool({
        requestId,
        tenant: run.tenant,
        runId: run.run_id,
        root: rootRefOf(run),
        priority: priorityMessage(run.priority),
        budget: spawnBudgetMessage(JSON.parse(run.spawn_budget)),
        ...(run.deadline_at && { deadline: timestampFromDate(run.deadline_at) }),
      });
      return slot?.grant ?? '';
    },
    async closePool(requestId, { tenant, runId }) {
      await client.closePool({ requestId, tenant, runId });
    },
    close: () => client.close(),
  };
}
