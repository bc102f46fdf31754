import { SpawnBudgetService } from '@writ/contracts/writ/spawn/v1/spawn_budget_service_pb';
import { Priority } from '@writ/contracts/writ/supervision/v1/supervision_pb';
import type { BenchTarget } from './bench.ts';

/** Measures Acquire followed by Release in the pool of one run; each Acquire signs a grant. */
export const spawn: BenchTarget = {
  service: 'spawn-budget',
  name: 'Acquire, Release',
  async prepare(supervisor, address, prefix) {
    const client = supervisor.client(SpawnBudgetService, { audience: 'spawn-budget', address });
    const run = { tenant: 'acme', runId: 'run-1' };
    const root = { name: 'lead', instance: 'root' };
    await client.openPool({
      ...run,
      requestId: 'open',
      root,
      priority: Priority.NORMAL,
      budget: { maxAgents: 100 },
    });
    return async (n) => {
      const instance = `child-${n}`;
      await client.acquire({
        ...run,
        requestId: `${prefix}acquire-${n}`,
        agent: { name: 'child', instance },
        parent: root,
        depth: 1,
        priority: Priority.NORMAL,
      });
      await client.release({ ...run, requestId: `${prefix}release-${n}`, agentInstance: instance });
    };
  },
};
