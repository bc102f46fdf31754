import { createServer as createHttp1Server } from 'node:http';
import { createServer as createHttp2Server } from 'node:http2';
import type { Duplex } from 'node:stream';
import { Calls } from './calls.ts';
import { sniff } from './cleartext-sockets.ts';
import { closer } from './closing.ts';
import { connectHandlers } from './connect-methods.ts';
import { edgeRequests } from './edge-requests.ts';
import { EdgeSessions } from './edge-sessions.ts';
import { Health } from './health.ts';
import { STREAM_RESETS, withDefaults } from './limits.ts';
import { Listener } from './listener.ts';
import { reflectionServices } from './reflection.ts';
import type { RpcServer, RpcServerOptions } from './rpc-server.ts';
import { gated } from './served-service.ts';
import { openTlsDoor } from './tls/tls-door.ts';
import { warmValidation } from './validation.ts';
import type { WebHook, WebRequest, WebResponse } from './web.ts';

/** What the edge needs. */
export interface EdgeOptions extends RpcServerOptions {
  /** Answers what is no RPC, such as a console's files; returns false for what it does not know. */
  readonly web?: WebHook;
  /** Origins whose browser scripts may call, such as `https://console.example`. Default none. */
  readonly allowedOrigins?: readonly string[];
}

/**
 * Serves `routes` on one port as gRPC, gRPC-Web and Connect (JSON and binary), over HTTP/2 and
 * HTTP/1.1, with health and reflection (SYS-2). With TLS the client chooses between the two by ALPN,
 * in cleartext HTTP/2 begins with prior knowledge. Health says NOT_SERVING until `setServing(true)`.
 *
 * @throws UnavailableError PORT_IN_USE when the port is taken, naming `portSetting`
 */
export async function createEdge(options: EdgeOptions): Promise<RpcServer> {
  const { host, port, portSetting, routes, gate, telemetry, tls } = options;
  const { web, allowedOrigins = [] } = options;
  const limits = withDefaults(options.limits);
  const calls = new Calls({ gate, telemetry, limits });
  const health = new Health(routes.map(({ service }) => service.typeName));
  const services = [...routes.map(gated), health.service];
  services.push(...reflectionServices(services));
  const handlers = connectHandlers(calls, services, limits.maxMessageBytes);
  const answer = edgeRequests({ handlers, allowedOrigins, web, log: telemetry.log });
  warmValidation(routes.flatMap(({ methods }) => methods.map(({ method }) => method.input)));

  const http1 = createHttp1Server((request, response) => answer(request, response));
  const http2 = createHttp2Server(
    {
      maxSessionMemory: limits.maxSessionMemoryMb,
      settings: { maxConcurrentStreams: limits.maxConcurrentStreams },
      ...STREAM_RESETS,
    },
    (request, response) =>
      answer(request as unknown as WebRequest, response as unknown as WebResponse),
  );
  const sessions = new EdgeSessions(http2, limits);
  const inHttp1 = (socket: Duplex): void => void http1.emit('connection', socket);
  const inHttp2 = (socket: Duplex): void => void http2.emit('connection', socket);
  const door =
    tls &&
    openTlsDoor({
      tls,
      protocols: ['h2', 'http/1.1'],
      log: telemetry.log,
      accept: (socket) => (socket.alpnProtocol === 'h2' ? inHttp2(socket) : inHttp1(socket)),
      onRotation: () => {
        sessions.close();
        http1.closeIdleConnections();
      },
    });
  const enter = door?.enter ?? ((socket) => sniff(socket, { http1: inHttp1, http2: inHttp2 }));
  const listener = await Listener.open({
    host,
    port,
    portSetting,
    accept: enter,
    limits,
    telemetry,
  }).catch((error: unknown) => {
    door?.close();
    throw error;
  });
  // It only gets sockets handed over; unless it believes to listen, it watches over no timeouts.
  http1.emit('listening');
  return {
    host,
    port: listener.port,
    address: listener.address,
    setServing: (up) => health.setServing(up),
    close: closer({
      health,
      calls,
      listener,
      sayGoodbye: () => {
        door?.close();
        http1.close();
        sessions.close();
      },
    }),
  };
}
