/** One of several supervisors: makes all acquires of a request concurrently and returns the outcomes. */
import { flushCompileCache } from 'node:module';
import { SpawnBudgetService } from '@writ/contracts/writ/spawn/v1/spawn_budget_service_pb';
import { contractPriority } from '@writ/identity';
import { isWritError, type Priority } from '@writ/kernel';
import { createRpcClient } from '@writ/rpc';
import { createTelemetry } from '@writ/telemetry';

/** The acquires of one client. */
export interface SpawnRequest {
  readonly address: string;
  readonly serviceToken: string;
  readonly tenant: string;
  readonly runId: string;
  readonly children: readonly { readonly instance: string; readonly priority: Priority }[];
}

/** The outcome of one acquire. */
export interface SpawnOutcome {
  readonly instance: string;
  readonly priority: Priority;
  /** Why the slot was refused; empty when it was granted. */
  readonly reason: string;
  readonly paused: readonly { readonly victim: string; readonly beneficiary: string }[];
}

process.on('message', (message) => {
  void acquireAll(message as SpawnRequest);
});
process.send?.('ready');
// kill -9 ends this process, so the compile cache is written now.
flushCompileCache();

async function acquireAll(request: SpawnRequest): Promise<void> {
  const { address, serviceToken, tenant, runId, children } = request;
  const client = createRpcClient(SpawnBudgetService, {
    address,
    telemetry: createTelemetry({ service: 'supervisor', logLevel: 'silent' }),
    serviceToken: async () => serviceToken,
    timeoutMs: 60_000,
  });
  const outcomes = await Promise.all(
    children.map(async ({ instance, priority }): Promise<SpawnOutcome> => {
      try {
        const { changes } = await client.acquire({
          tenant,
          runId,
          requestId: `acquire-${instance}`,
          agent: { name: 'child', instance },
          parent: { name: 'lead', instance: 'root' },
          depth: 1,
          priority: contractPriority(priority),
        });
        const paused = changes.map(({ agent, becauseOf }) => ({
          victim: agent?.instance ?? '',
          beneficiary: becauseOf?.instance ?? '',
        }));
        return { instance, priority, reason: '', paused };
      } catch (error) {
        const reason = isWritError(error) ? error.reason : String(error);
        return { instance, priority, reason, paused: [] };
      }
    }),
  );
  process.send?.(outcomes);
}
