import type { AgentWorkerPeer } from './agent-worker.ts';
import type { ExecutionMeterPeer } from './execution-meter.ts';
import type { SpawnBudgetPeer } from './spawn-budget.ts';
import type { ToolGatewayPeer } from './tool-gateway.ts';

/** The services that the supervisor calls. */
export interface SupervisorPeers {
  readonly spawnBudget: SpawnBudgetPeer;
  readonly executionMeter: ExecutionMeterPeer;
  readonly agentWorker: AgentWorkerPeer;
  readonly toolGateway: ToolGatewayPeer;
}
