import { Metadata, Server } from '@grpc/grpc-js';
import { type Clock, systemClock } from '@writ/kernel';
import { METADATA } from '../caller.ts';
import { Calls } from '../calls/calls.ts';
import { PacedQueue } from '../calls/paced-queue.ts';
import { gated, type ServedService, urgentPaths } from '../calls/served-service.ts';
import { warmValidation } from '../calls/validation.ts';
import { withDetails } from '../errors/grpc-errors.ts';
import {
  interceptStarts,
  onSession,
  type SentStatus,
  setHttp2Options,
  statusInterceptor,
} from '../grpc-js-internals.ts';
import { STREAM_RESETS, withDefaults } from '../limits.ts';
import { LoopbackServer } from '../loopback/loopback.ts';
import { grpcConnections } from '../tls/grpc-connections.ts';
import { assertPrivate } from '../tls/private-port.ts';
import { createClose } from './closing.ts';
import { GrpcMethods } from './grpc-methods.ts';
import { Health } from './health.ts';
import { Listener } from './listener.ts';
import { reflectionServices } from './reflection.ts';
import { requestTimeLimit } from './request-time-limit.ts';
import type { RpcServer, RpcServerOptions } from './rpc-server.ts';
import { initialStreams, limitStreams } from './stream-limit.ts';

/**
 * Serves `routes` over gRPC, with health (grpc.health.v1) and reflection (v1, v1alpha) (SYS-2).
 * Health reports NOT_SERVING until `setServing(true)`.
 *
 * @throws UnavailableError PORT_IN_USE when the port is in use, naming `portSetting`, or LISTEN_FAILED;
 *   PreconditionError CLEARTEXT_NOT_ALLOWED when the port would accept cleartext from other hosts (SYS-4)
 */
export async function createRpcServer(options: RpcServerOptions): Promise<RpcServer> {
  const { host, port, portSetting, routes, gate, telemetry, tls, clock = systemClock } = options;
  assertPrivate(options);
  const limits = withDefaults(options.limits);
  const calls = new Calls({ gate, telemetry, limits });
  const health = new Health(routes.map(({ service }) => service.typeName));
  const server = new Server({
    interceptors: [
      statusInterceptor((sent) => withTime(withDetails(sent), clock)),
      requestTimeLimit(limits.maxUnaryMs),
    ],
    'grpc.enable_channelz': 0,
    'grpc.max_receive_message_length': limits.maxMessageBytes,
    'grpc.max_send_message_length': -1,
    'grpc.max_concurrent_streams': initialStreams(limits),
    'grpc-node.max_session_memory': limits.maxSessionMemoryMb,
    'grpc.max_connection_idle_ms': limits.connectionIdleMs,
    'grpc.keepalive_time_ms': limits.connectionPingMs,
    'grpc.keepalive_timeout_ms': limits.connectionPingMs,
  });
  setHttp2Options(server, STREAM_RESETS);
  onSession(server, (session) => limitStreams(session, limits));
  const methods = new GrpcMethods(calls, limits.maxMessageBytes);
  const routed = routes.map(gated);
  const services = [...routed, health.service];
  for (const service of [...services, ...reflectionServices(services)]) {
    methods.register(server, service);
  }
  beginPaced(server, services);
  warmValidation(routes.flatMap(({ methods: all }) => all.map(({ method }) => method.input)));
  const connections = grpcConnections(server, tls, telemetry.log);
  const listener = await Listener.open({
    host,
    port,
    portSetting,
    accept: connections.accept,
    limits,
    telemetry,
  }).catch((error: unknown) => {
    connections.close();
    throw error;
  });
  const { maxMessageBytes } = limits;
  const { address } = listener;
  const local = new LoopbackServer({ address, calls, services: routed, maxMessageBytes });
  options.loopback?.add(address, local);
  const close = createClose({
    health,
    calls,
    listener,
    drainConnections: () => {
      connections.close();
      server.tryShutdown(() => {
        // The listener waits for every connection and destroys those that remain open.
      });
    },
  });
  return {
    host,
    port: listener.port,
    address,
    setServing: (up) => {
      health.setServing(up);
      local.setServing(up);
    },
    close: (graceMs) => {
      // Clients in this process, including those that wait for the server to start, receive DRAINING instead of a
      // refused connection.
      calls.rejectNew();
      local.setServing(true);
      return close(graceMs);
    },
  };
}

/**
 * Starts a limited number of calls per turn of the event loop, so that a halt does not wait for thousands of calls that
 * connections deliver at once (BD-2).
 */
function beginPaced(server: Server, services: readonly ServedService[]): void {
  const urgent = urgentPaths(services);
  const turns = new PacedQueue();
  interceptStarts(server, (path, start) => (urgent.has(path) ? start() : turns.add(start)));
}

/** Adds the current time of the server to a status, so that clients detect clock skew (BD-3). */
function withTime(sent: SentStatus, clock: Clock): SentStatus {
  const metadata = sent.metadata ?? new Metadata();
  metadata.set(METADATA.time, String(clock.now().getTime()));
  return { ...sent, metadata };
}
