import {
  type ServiceName,
  type ServiceTls,
  type Signer,
  serviceTokens,
  type WorkerPool,
} from '@writ/identity';
import type { Clock, PeerClocks } from '@writ/kernel';
import type { Loopback } from '@writ/rpc';
import type { Telemetry } from '@writ/telemetry';
import type { SupervisorConfig } from '../config.ts';
import { agentHosts } from './agent-hosts.ts';
import { type AgentWorkerPeer, createAgentWorkerPeer } from './agent-worker.ts';
import { pooledAgentWorkers } from './agent-worker-pools.ts';
import { createExecutionMeterPeer, type ExecutionMeterPeer } from './execution-meter.ts';
import { createSpawnBudgetPeer, type SpawnBudgetPeer } from './spawn-budget.ts';
import { createToolGatewayPeer, type ToolGatewayPeer } from './tool-gateway.ts';

/** The clients of the other services. */
export interface SupervisorPeers {
  readonly spawnBudget: SpawnBudgetPeer;
  readonly executionMeter: ExecutionMeterPeer;
  /** agent-worker, and agent-proxy where the agent is external. */
  readonly agentWorker: AgentWorkerPeer;
  readonly agentProxy: AgentWorkerPeer;
  readonly toolGateway: ToolGatewayPeer;
}

/** Creates the clients, each with service tokens for its peer. Channels are opened by the first call. */
export function createPeers(given: {
  readonly config: SupervisorConfig;
  readonly telemetry: Telemetry;
  readonly signer: Signer;
  readonly clock: Clock;
  readonly peerClocks: PeerClocks;
  readonly addressOf: (service: ServiceName) => string;
  readonly workerPools?: readonly WorkerPool[] | undefined;
  readonly tls?: ServiceTls | undefined;
  readonly loopback?: Loopback | undefined;
}): SupervisorPeers {
  const { config, telemetry, signer, clock, peerClocks, addressOf, tls, loopback } = given;
  const optionsFor = (service: ServiceName, address = () => addressOf(service)) => ({
    address,
    telemetry,
    serviceToken: serviceTokens(signer, { audience: service, replica: config.replica }),
    tls: tls?.to(service),
    loopback,
    clock,
    onPeerTime: (timeMs: number) => peerClocks.observe(service, timeMs),
  });
  const agentProxy = createAgentWorkerPeer(optionsFor('agent-proxy'));
  return {
    spawnBudget: createSpawnBudgetPeer(optionsFor('spawn-budget')),
    executionMeter: createExecutionMeterPeer(optionsFor('execution-meter')),
    agentWorker: agentHosts(
      pooledAgentWorkers(given.workerPools ?? [], (pool) =>
        createAgentWorkerPeer(optionsFor('agent-worker', pool && (() => pool.address))),
      ),
      agentProxy,
    ),
    agentProxy,
    toolGateway: createToolGatewayPeer(optionsFor('tool-gateway'), clock),
  };
}
