import { create, fromBinary, toBinary } from '@bufbuild/protobuf';
import { type Client, experimental, Metadata, type ServiceError, status } from '@grpc/grpc-js';
import {
  HealthCheckRequestSchema,
  HealthCheckResponseSchema,
  Health as HealthContract,
  HealthCheckResponse_ServingStatus as ServingStatus,
} from '@writ/contracts/grpc/health/v1/health_pb';
import { context, ROOT_CONTEXT, type Telemetry } from '@writ/telemetry';
import { ATTR_RPC_SERVICE } from '../rpc-attributes.ts';

/**
 * Which replicas are called: those that say that they serve, those that answer at all, or, unasked,
 * those that a connection leads to.
 */
export type ReplicaHealth = 'serving' | 'answering' | 'unasked';

/** How a replica stands; only one that serves is in the round. */
export type Standing = 'serving' | 'not_serving' | 'silent' | 'lost' | 'connecting';

/** What a replica said of itself; `unsure` when nothing can be told from it. */
export type Reply = Extract<Standing, 'serving' | 'not_serving' | 'silent'> | 'unsure';

/** Channel option that hands the watch to the balancer; no part of what tells connections apart. */
export const WATCH_OPTION = `${experimental.SUBCHANNEL_ARGS_EXCLUDE_KEY_PREFIX}.writ_watch`;
/** Metadata key of a call that is for one replica; it is taken off on the way. */
export const REPLICA_KEY = 'writ-replica';

const ANSWER_WITHIN_MS = 1_000;
/** An answer may have waited unread for this long while this process did something else. */
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
  readonly health: ReplicaHealth;
  readonly telemetry: Telemetry;
}

/** Asks the replicas behind one client how they are, and tells who comes and goes. */
export class ReplicaWatch {
  readonly #options: WatchOptions;
  /** Makes the calls; set once it is there. */
  client: Client | undefined;

  constructor(options: WatchOptions) {
    this.#options = options;
  }

  /** Whether replicas are asked at all. */
  get asks(): boolean {
    return this.#options.health !== 'unasked';
  }

  /** Asks one replica (grpc.health.v1 Check); never rejects. */
  ask(address: string): Promise<Reply> {
    const { client } = this;
    if (client === undefined) return Promise.resolve('unsure');
    const metadata = new Metadata();
    metadata.set(REPLICA_KEY, address);
    const startedAt = performance.now();
    const deadline = Date.now() + ANSWER_WITHIN_MS;
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
          const reply = error === null ? this.#read(response) : replyOf(error);
          const isOwnFault = reply === 'silent' && tookMs > ANSWER_WITHIN_MS + OWN_DELAY_MS;
          resolve(isOwnFault ? 'unsure' : reply);
        },
      );
    });
  }

  /** Tells that a replica was left out of the round, or was taken back. Ids only. */
  tell(replica: string, standing: Standing): void {
    const { service, telemetry } = this.#options;
    telemetry.metrics.count('replicaChanges', {
      [ATTR_RPC_SERVICE]: service,
      'writ.standing': standing,
    });
    const fields = { rpc_service: service, replica, standing };
    // It belongs to no call, though the connection was made for one.
    context.with(ROOT_CONTEXT, () => {
      if (standing === 'serving') telemetry.log.info(fields, 'A replica was taken back.');
      else telemetry.log.warn(fields, 'A replica was left out.');
    });
  }

  #read(response: Buffer | undefined): Reply {
    if (this.#options.health === 'answering' || response === undefined) return 'serving';
    try {
      const { status: said } = fromBinary(HealthCheckResponseSchema, response);
      return said === ServingStatus.NOT_SERVING ? 'not_serving' : 'serving';
    } catch {
      return 'unsure';
    }
  }
}

/** A server that knows no health checks answers nonetheless. */
function replyOf({ code }: ServiceError): Reply {
  if (code === status.DEADLINE_EXCEEDED) return 'silent';
  // Of a connection that is no more the balancer hears by itself.
  if (code === status.UNAVAILABLE || code === status.CANCELLED) return 'unsure';
  return 'serving';
}
