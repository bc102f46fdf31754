import { createServer as createHttp1Server } from 'node:http';
import { createServer as createHttp2Server } from 'node:http2';
import type { Duplex } from 'node:stream';
import { Calls } from '../calls/calls.ts';
import { gated, pathsOf, urgentPaths } from '../calls/served-service.ts';
import { warmValidation } from '../calls/validation.ts';
import { withDefaults } from '../limits.ts';
import { createClose } from '../server/closing.ts';
import { Health } from '../server/health.ts';
import { Listener } from '../server/listener.ts';
import { reflectionServices } from '../server/reflection.ts';
import type { RpcServer, RpcServerOptions } from '../server/rpc-server.ts';
import { initialStreams, limitStreams } from '../server/stream-limit.ts';
import { createTlsAcceptor } from '../tls/tls-acceptor.ts';
import { connectHandlers } from './connect-methods.ts';
import { edgeRequests } from './edge-requests.ts';
import { EdgeSessions } from './edge-sessions.ts';
import { type EventStream, eventStreams } from './event-streams.ts';
import { OpenResponses } from './open-responses.ts';
import { sniff } from './sniff.ts';
import type { WebHook, WebRequest, WebResponse } from './web.ts';

/** Options of {@link createEdge}. */
export interface EdgeOptions extends RpcServerOptions {
  /**
   * Handles requests that are not RPCs, such as a console's files; returns false when it has no response. `close` waits
   * for its responses as it waits for calls, but does not abort them.
   */
  readonly web?: WebHook;
  /** Streams that are also served as GET over plain HTTP. */
  readonly eventStreams?: readonly EventStream[];
  /** Origins allowed by CORS, such as `https://console.example`. Default none. */
  readonly allowedOrigins?: readonly string[];
}

/**
 * Serves `routes` on one port as gRPC, gRPC-Web and Connect (JSON and binary), over HTTP/2 and
 * HTTP/1.1, with health and reflection (SYS-2). ALPN selects the HTTP version under TLS; in cleartext,
 * HTTP/2 requires prior knowledge. Health reports NOT_SERVING until `setServing(true)`.
 *
 * @throws UnavailableError PORT_IN_USE when the port is in use, naming `portSetting`, or LISTEN_FAILED
 */
export async function createEdge(options: EdgeOptions): Promise<RpcServer> {
  const { host, port, portSetting, routes, gate, telemetry, tls } = options;
  const { web, allowedOrigins = [], eventStreams: streams = [] } = options;
  const limits = withDefaults(options.limits);
  const calls = new Calls({ gate, telemetry, limits });
  const health = new Health(routes.map(({ service }) => service.typeName));
  const services = [...routes.map(gated), health.service];
  services.push(...reflectionServices(services));
  const responses = new OpenResponses();
  const handlers = connectHandlers(calls, services, limits.maxMessageBytes);
  const handle = edgeRequests({
    handlers,
    bidi: pathsOf(services, ({ implementation }) => implementation.kind === 'bidi_streaming'),
    urgent: urgentPaths(services),
    requestMs: limits.maxUnaryMs,
    disconnections: calls.disconnections,
    allowedOrigins,
    events: eventStreams({ streams, services, calls, limits }),
    web,
    responses,
    log: telemetry.log,
  });
  warmValidation(routes.flatMap(({ methods }) => methods.map(({ method }) => method.input)));

  const http1 = createHttp1Server(
    // The same idle timeout as over HTTP/2. If the server closed an idle connection before the client does, it would
    // reset a request that the client has just sent (SYS-2).
    { keepAliveTimeout: limits.connectionIdleMs },
    (request, response) => handle(request, response),
  );
  const http2 = createHttp2Server(
    {
      maxSessionMemory: limits.maxSessionMemoryMb,
      settings: { maxConcurrentStreams: initialStreams(limits) },
    },
    (request, response) =>
      handle(request as unknown as WebRequest, response as unknown as WebResponse),
  );
  http2.on('session', (session) => limitStreams(session, limits));
  const sessions = new EdgeSessions(http2, limits);
  const acceptHttp1 = (socket: Duplex): void => void http1.emit('connection', socket);
  const acceptHttp2 = (socket: Duplex): void => void http2.emit('connection', socket);
  const acceptor =
    tls &&
    createTlsAcceptor({
      tls,
      protocols: ['h2', 'http/1.1'],
      log: telemetry.log,
      onSecure: (socket) =>
        socket.alpnProtocol === 'h2' ? acceptHttp2(socket) : acceptHttp1(socket),
      onRotation: () => {
        sessions.close();
        http1.closeIdleConnections();
      },
    });
  const accept =
    acceptor?.accept ?? ((socket) => sniff(socket, { http1: acceptHttp1, http2: acceptHttp2 }));
  const listener = await Listener.open({
    host,
    port,
    portSetting,
    accept,
    limits,
    telemetry,
  }).catch((error: unknown) => {
    acceptor?.close();
    throw error;
  });
  // The HTTP/1 server does not listen but is passed accepted sockets. Without this event it would not enforce its
  // timeouts.
  http1.emit('listening');
  return {
    host,
    port: listener.port,
    address: listener.address,
    setServing: (up) => health.setServing(up),
    close: createClose({
      health,
      calls,
      responses,
      listener,
      drainConnections: () => {
        acceptor?.close();
        http1.close();
        sessions.close();
      },
    }),
  };
}
