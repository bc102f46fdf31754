import { readAgentProxyConfig } from '@writ/agent-proxy';
import { readAgentWorkerConfig } from '@writ/agent-worker';
import { readExecutionMeterConfig } from '@writ/execution-meter';
import { readSpawnBudgetConfig } from '@writ/spawn-budget';
import { readSupervisorConfig } from '@writ/supervisor';
import { readToolGatewayConfig } from '@writ/tool-gateway';

/**
 * The function with which each service reads its environment. Tests use it to check that the services accept the
 * settings of a deployment.
 */
export const CONFIG_READERS = {
  supervisor: readSupervisorConfig,
  'spawn-budget': readSpawnBudgetConfig,
  'execution-meter': readExecutionMeterConfig,
  'tool-gateway': readToolGatewayConfig,
  'agent-worker': readAgentWorkerConfig,
  'agent-proxy': readAgentProxyConfig,
} as const;
