import { create, fromBinary, toBinary } from '@bufbuild/protobuf';
import { type Client, experimental, Metadata, type ServiceError, status } from '@grpc/grpc-js';
import {
  HealthCheckRequestSchema,
  HealthCheckResponseSchema,
  Health as HealthContract,
  HealthCheckResponse_ServingStatus as ServingStatus,
} from '@writ/contracts/grpc/health/v1/health_pb';
import { context, ROOT_CONTEXT, type Telemetry } from '@writ/telemetry';
import { ATTR_RPC_SERVICE } from '../telemetry/rpc-attributes.ts';

/**
 * Which replicas receive calls. `serving`: replicas that answer health checks and do not report NOT_SERVING, and
 * replicas without the health service. `responding`: additionally replicas that report NOT_SERVING. `unchecked`: all
 * connected replicas.
 */
export type RequiredHealth = 'serving' | 'responding' | 'unchecked';

/**
 * The state of a replica. `connecting`: the connection or its first health check is in progress. `silent`: connected,
 * but the last health check timed out. `lost`: a connection attempt failed or timed out, and none has succeeded since.
 * Calls use `serving` replicas. If no replica is `serving`, calls wait while a replica is `connecting`, otherwise use
 * `silent` replicas, and fail if there are none.
 */
export type ReplicaState = 'serving' | 'not_serving' | 'silent' | 'lost' | 'connecting';

/** The result of a health check; `inconclusive` results are ignored. */
export type ProbeResult =
  | Extract<ReplicaState, 'serving' | 'not_serving' | 'silent'>
  | 'inconclusive';

/** Channel option that passes the watch to the balancer; not part of the identity of a subchannel. */
export const WATCH_OPTION = `${experimental.SUBCHANNEL_ARGS_EXCLUDE_KEY_PREFIX}.writ_watch`;
/** Metadata key that addresses a call to one replica; the picker removes it. */
export const REPLICA_KEY = 'writ-replica';

const PROBE_TIMEOUT_MS = 1_000;
/** A timeout that fires this late was delayed by this process, not by the replica. */
const OWN_DELAY_MS = 250;

const { typeName } = HealthContract;
const CHECK = `/${typeName}/${HealthContract.method.check.name}`;
const WHOLE_SERVER = Buffer.from(
  toBinary(HealthCheckRequestSchema, create(HealthCheckRequestSchema)),
);
const asBytes = (bytes: Buffer): Buffer => bytes;

interface WatchOptions {
  /** Full name of the called service. */
  readonly service: string;
  readonly health: RequiredHealth;
  readonly telemetry: Telemetry;
}

/** Runs the health checks of the replicas of one client, and reports ejections and readmissions. */
export class ReplicaWatch {
  readonly #options: WatchOptions;
  /** The client that makes the calls; set after its creation. */
  client: Client | undefined;

  constructor(options: WatchOptions) {
    this.#options = options;
  }

  /** Whether health checks are enabled. */
  get isEnabled(): boolean {
    return this.#options.health !== 'unchecked';
  }

  /** Checks the health of one replica (grpc.health.v1 Check); never rejects. */
  probe(address: string): Promise<ProbeResult> {
    const { client } = this;
    if (client === undefined) return Promise.resolve('inconclusive');
    const metadata = new Metadata();
    metadata.set(REPLICA_KEY, address);
    const startedAt = performance.now();
    const deadline = Date.now() + PROBE_TIMEOUT_MS;
    return new Promise((resolve) => {
      client.makeUnaryRequest(
        CHECK,
        asBytes,
        asBytes,
        WHOLE_SERVER,
        metadata,
        { deadline },
        (error, response) => {
          const tookMs = performance.now() - startedAt;
          const result = error === null ? this.#read(response) : resultOf(error);
          const isOwnDelay = result === 'silent' && tookMs > PROBE_TIMEOUT_MS + OWN_DELAY_MS;
          resolve(isOwnDelay ? 'inconclusive' : result);
        },
      );
    });
  }

  /** Logs and counts that a replica was ejected or readmitted. */
  report(replica: string, state: ReplicaState): void {
    const { service, telemetry } = this.#options;
    telemetry.metrics.count('replicaChanges', {
      [ATTR_RPC_SERVICE]: service,
      'writ.replica.state': state,
    });
    const fields = { rpc_service: service, replica, state };
    // Outside the trace of the call that opened the connection.
    context.with(ROOT_CONTEXT, () => {
      if (state === 'serving') telemetry.log.info(fields, 'replica readmitted to load balancing');
      else telemetry.log.warn(fields, 'replica ejected from load balancing');
    });
  }

  #read(response: Buffer | undefined): ProbeResult {
    if (this.#options.health === 'responding' || response === undefined) return 'serving';
    try {
      const { status: reported } = fromBinary(HealthCheckResponseSchema, response);
      return reported === ServingStatus.NOT_SERVING ? 'not_serving' : 'serving';
    } catch {
      return 'inconclusive';
    }
  }
}

/**
 * Returns the result of a failed health check. Any status other than the three below, such as UNIMPLEMENTED, shows that
 * the server responds.
 */
function resultOf({ code }: ServiceError): ProbeResult {
  if (code === status.DEADLINE_EXCEEDED) return 'silent';
  // grpc-js notifies the balancer of a lost connection.
  if (code === status.UNAVAILABLE || code === status.CANCELLED) return 'inconclusive';
  return 'serving';
}
