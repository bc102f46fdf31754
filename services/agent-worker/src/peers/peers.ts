import { type ServiceName, type ServiceTls, type Signer, serviceTokens } from '@writ/identity';
import type { Clock, PeerClocks } from '@writ/kernel';
import type { Loopback } from '@writ/rpc';
import type { Telemetry } from '@writ/telemetry';
import { createExecutionMeterPeer, type ExecutionMeterPeer } from './execution-meter.ts';
import { createSpawnBudgetPeer, type SpawnBudgetPeer } from './spawn-budget.ts';
import { createSupervisorPeer, type SupervisorPeer } from './supervisor.ts';
import { createToolGatewayPeer, type ToolGatewayPeer } from './tool-gateway.ts';

/** The services that the worker calls. */
export interface WorkerPeers {
  readonly supervisor: SupervisorPeer;
  readonly spawnBudget: SpawnBudgetPeer;
  readonly executionMeter: ExecutionMeterPeer;
  readonly toolGateway: ToolGatewayPeer;
}

/** Dependencies of {@link createPeers}. */
export interface PeerParts {
  readonly clock: Clock;
  readonly peerClocks: PeerClocks;
  readonly telemetry: Telemetry;
  readonly signer: Signer;
  readonly addressOf: (service: ServiceName) => string;
  /** Id with which this worker identifies itself to its peers. */
  readonly workerId: string;
  /** Tenants that this worker serves; empty for all (SYS-6). */
  readonly tenants: readonly string[];
  /** Default: cleartext. */
  readonly tls?: ServiceTls | undefined;
  readonly loopback?: Loopback | undefined;
}

/** Creates clients of all peers; each connects on its first call. */
export function createPeers({
  clock,
  peerClocks,
  telemetry,
  signer,
  addressOf,
  workerId,
  tenants,
  tls,
  loopback,
}: PeerParts): WorkerPeers {
  const to = (service: ServiceName) => ({
    address: () => addressOf(service),
    telemetry,
    serviceToken: serviceTokens(signer, { audience: service, replica: workerId, tenants }),
    tls: tls?.to(service),
    loopback,
    clock,
    onPeerTime: (timeMs: number) => peerClocks.observe(service, timeMs),
  });
  const ownTime = (service: ServiceName) => (timeMs: number) => peerClocks.toOwn(service, timeMs);
  return {
    supervisor: createSupervisorPeer(to('supervisor'), ownTime('supervisor')),
    spawnBudget: createSpawnBudgetPeer(to('spawn-budget'), ownTime('spawn-budget')),
    executionMeter: createExecutionMeterPeer(to('execution-meter')),
    toolGateway: createToolGatewayPeer(to('tool-gateway'), clock),
  };
}
