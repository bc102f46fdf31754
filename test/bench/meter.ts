import { fileURLToPath } from 'node:url';
import { ExecutionMeterService } from '@writ/contracts/writ/meter/v1/execution_meter_service_pb';
import type { BenchTarget } from './bench.ts';

const AGENTS = 16;

/** Measures Reserve followed by Settle on the tabs of 16 agents of one run; each call updates five budget levels. */
export const meter: BenchTarget = {
  service: 'execution-meter',
  name: 'Reserve, Settle',
  env: {
    WRIT_MODELS_FILE: fileURLToPath(new URL('models.yaml', import.meta.url)),
  },
  async prepare(supervisor, address, prefix) {
    const client = supervisor.client(ExecutionMeterService, {
      audience: 'execution-meter',
      address,
    });
    const tabs = Array.from({ length: AGENTS }, (_, index) => ({
      tenant: 'acme',
      runId: 'run-1',
      agentInstance: `payer-${index}`,
    }));
    for (const { tenant, runId, agentInstance: instance } of tabs) {
      await client.openTab({
        requestId: `open-${instance}`,
        tenant,
        runId,
        sessionId: 'session-1',
        agent: { name: 'payer', instance },
        budget: { maxTokens: 1_000_000_000n, maxCostNanoUsd: 1_000_000_000_000n },
      });
    }
    return async (n) => {
      const tab = tabs[n % AGENTS];
      const callId = `${prefix}call-${n}`;
      await client.reserve({ tab, callId, tokens: 100n, costNanoUsd: 1_000n, turns: 1n });
      const usage = { inputTokens: 40n, outputTokens: 20n };
      await client.settle({ tab, callId, usage, costNanoUsd: 600n, turns: 1n, model: 'fast' });
    };
  },
};
