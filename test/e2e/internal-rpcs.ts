import type { DescService } from '@bufbuild/protobuf';
import { ExecutionMeterService } from '@writ/contracts/writ/meter/v1/execution_meter_service_pb';
import { ModelService } from '@writ/contracts/writ/model/v1/model_service_pb';
import { ReviewService } from '@writ/contracts/writ/review/v1/review_service_pb';
import { SpawnBudgetService } from '@writ/contracts/writ/spawn/v1/spawn_budget_service_pb';
import { SupervisionService } from '@writ/contracts/writ/supervision/v1/supervision_service_pb';
import { ToolGatewayService } from '@writ/contracts/writ/tool/v1/tool_gateway_service_pb';
import { AgentWorkerService } from '@writ/contracts/writ/worker/v1/agent_worker_service_pb';
import { type CoreService, rpcKey } from '@writ/identity';

const INTERNAL: readonly (readonly [DescService, CoreService])[] = [
  [SupervisionService, 'supervisor'],
  [ReviewService, 'supervisor'],
  [SpawnBudgetService, 'spawn-budget'],
  [ExecutionMeterService, 'execution-meter'],
  [ModelService, 'execution-meter'],
  [ToolGatewayService, 'tool-gateway'],
  [AgentWorkerService, 'agent-worker'],
];

/** The methods of a service by their keys in the caller table. */
export const methodsOf = (service: DescService) =>
  service.methods.map((method) => [rpcKey(method), method] as const);

/** Every RPC between services, with the service that implements it. */
export const INTERNAL_RPCS = INTERNAL.flatMap(([service, server]) =>
  methodsOf(service).map(([rpc, method]) => [rpc, method, server] as const),
);
