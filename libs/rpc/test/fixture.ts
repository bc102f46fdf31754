import { RunService } from '@writ/contracts/writ/run/v1/run_service_pb';
import { UnauthenticatedError } from '@writ/kernel';
import { createTelemetry, InMemorySpans, type Telemetry } from '@writ/telemetry';
import { onTestFinished } from 'vitest';
import { createEdge, type EdgeOptions } from '../src/edge/index.ts';
import {
  type CallOptions,
  type ClosableRpcClient,
  createRpcClient,
  createRpcServer,
  type Gate,
  type Handlers,
  Loopback,
  partialRoute,
  type Route,
  type RpcClientOptions,
  type RpcServer,
} from '../src/index.ts';

type RunHandlers = Handlers<typeof RunService>;
type RunClient = ClosableRpcClient<typeof RunService>;

/** The transports, which must behave alike. */
export const TRANSPORTS = ['grpc-js', 'loopback', 'edge'] as const;
export type Transport = (typeof TRANSPORTS)[number];

/** The API key that the gate accepts. */
export const KEY = 'hunter2';
export const ALLOWED: CallOptions = { headers: { authorization: `Bearer ${KEY}` } };

/** A valid request. */
export const START = { requestId: 'req-1', agent: 'refund-desk', goal: 'Refund it.' };

export const gate: Gate = async ({ header }) => {
  if (header('Authorization') !== `Bearer ${KEY}`) {
    throw new UnauthenticatedError('TOKEN_MISSING', 'authorization: is required.');
  }
  const epoch = header('writ-epoch');
  return {
    person: { subject: 'ann', tenant: 'acme', roles: ['caller'] },
    ...(epoch === undefined ? {} : { epoch: BigInt(epoch) }),
  };
};

/** RunService with these handlers; the other methods are not implemented. */
export function runRoute(handlers: Partial<RunHandlers>): Route {
  return partialRoute(RunService, handlers);
}

/** A started server with its telemetry; closed when the test has finished. */
export interface Started {
  readonly server: RpcServer;
  readonly address: string;
  readonly telemetry: Telemetry;
  readonly spans: InMemorySpans;
  /** Returns the log lines that have been written. */
  readonly lines: () => Record<string, unknown>[];
  /** The registry through which clients call the server without a connection; only for `loopback`. */
  readonly loopback: Loopback | undefined;
  /** A client of RunService. */
  readonly client: (options?: Partial<RpcClientOptions>) => RunClient;
}

export async function start(
  transport: Transport,
  handlers: Partial<RunHandlers>,
  options: Partial<EdgeOptions> = {},
): Promise<Started> {
  const written: string[] = [];
  const spans = new InMemorySpans();
  const telemetry = createTelemetry({
    service: 'supervisor',
    logLevel: 'debug',
    logStream: { write: (line: string) => void written.push(line) },
    spanProcessors: [spans],
    internalSpans: true,
  });
  const create = transport === 'edge' ? createEdge : createRpcServer;
  const loopback = transport === 'loopback' ? new Loopback() : undefined;
  const server = await create({
    host: '127.0.0.1',
    port: 0,
    routes: [runRoute(handlers)],
    gate,
    telemetry,
    loopback,
    ...options,
  });
  onTestFinished(() => server.close(0));
  server.setServing(true);
  return {
    server,
    address: server.address,
    telemetry,
    loopback,
    spans,
    lines: () => written.map((line) => JSON.parse(line)),
    client: (clientOptions = {}) =>
      clientOf(server.address, telemetry, { loopback, ...clientOptions }),
  };
}

/** Creates a client of RunService; closed when the test has finished. */
export function clientOf(
  address: string,
  telemetry: Telemetry,
  options: Partial<RpcClientOptions> = {},
): RunClient {
  const client = createRpcClient(RunService, { address, telemetry, ...options });
  onTestFinished(() => client.close());
  return client;
}

/** All messages of a stream, and the error that ended it, if any. */
export async function drained<T>(stream: AsyncIterable<T>): Promise<{ got: T[]; error?: unknown }> {
  const got: T[] = [];
  try {
    for await (const each of stream) got.push(each);
  } catch (error) {
    return { got, error };
  }
  return { got };
}

/** The error with which `promise` rejects. */
export async function rejection(promise: Promise<unknown>): Promise<unknown> {
  return promise.then(
    (value) => {
      throw new Error(`Expected a rejection, got ${String(value)}`);
    },
    (error: unknown) => error,
  );
}
