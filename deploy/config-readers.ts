import { readAgentProxyConfig } from '@writ/agent-proxy';
import { readAgentWorkerConfig } from '@writ/agent-worker';
import { readExecutionMeterConfig } from '@writ/execution-meter';
import { readSpawnBudgetConfig } from '@writ/spawn-budget';
import { readSupervisorConfig } from '@writ/supervisor';
import { readToolGatewayConfig } from '@writ/tool-gateway';

/** How each service reads its environment: what a deployment sets must mean the same to it. */
export const CONFIG_READERS = {
  supervisor: readSupervisorConfig,
  'spawn-budget': readSpawnBudgetConfig,
  'execution-meter': readExecutionMeterConfig,
  'tool-gateway': readToolGatewayConfig,
  'agent-worker': readAgentWorkerConfig,
  'agent-proxy': readAgentProxyConfig,
} as const;
