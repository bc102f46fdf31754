/**
 * Everything that depends on internals of @grpc/grpc-js or on the text of its messages, because it has no public API.
 * Check this file on every upgrade of grpc-js; tests in libs/rpc/test cover each function.
 */
import {
  constants,
  type IncomingHttpHeaders,
  type ServerHttp2Session,
  type ServerHttp2Stream,
  type ServerOptions,
} from 'node:http2';
import type { PeerCertificate, TLSSocket } from 'node:tls';
import {
  type Server,
  ServerInterceptingCall,
  type ServerInterceptingCallInterface,
  type ServerInterceptor,
  status,
} from '@grpc/grpc-js';

/** A status that a server call sends. */
export type SentStatus = Parameters<ServerInterceptingCall['sendStatus']>[0];

/**
 * Sets options of node:http2 for which grpc-js has no channel option, such as the rate limit of stream resets, whose
 * default closes the connection of a client that cancels many streams (https://github.com/grpc/grpc-node/issues/2872).
 */
export function setHttp2Options(server: Server, options: ServerOptions): void {
  const { commonServerOptions } = server as unknown as { commonServerOptions: ServerOptions };
  Object.assign(commonServerOptions, options);
}

/**
 * Passes every new call of `server` to `begin`, with the path of its method and a function that starts the call,
 * instead of starting it at once. grpc-js starts a call in the `stream` event; one read of a connection can emit a
 * thousand of these events. An interceptor (https://github.com/grpc/grpc-node/pull/2650) runs too late to delay the
 * start. Must be called before a port is bound or a connection injector is created. A stream that is closed before it
 * is started gets no call.
 */
export function interceptStarts(
  server: Server,
  begin: (path: string, start: () => void) => void,
): void {
  const inner = server as unknown as InnerServer;
  const startCall = inner._streamHandler.bind(server);
  inner._streamHandler = (interceptors, stream, headers) => {
    const ignore = (): void => {
      // The `close` event that follows ends the call; before the start there is no call to end.
    };
    stream.on('error', ignore);
    begin(headers[':path'] ?? '', () => {
      if (!stream.closed && !stream.destroyed) startCall(interceptors, stream, headers);
    });
  };
}

/** A server of grpc-js, without channelz. */
interface InnerServer {
  _sessionHandler(http2Server: unknown): (session: ServerHttp2Session) => void;
  _streamHandler(
    interceptors: readonly ServerInterceptor[],
    stream: ServerHttp2Stream,
    headers: IncomingHttpHeaders,
  ): void;
}

/**
 * Creates an interceptor that passes every sent status through `change`. The responder of a public interceptor
 * (https://github.com/grpc/grpc-node/pull/2650) does not see the statuses that grpc-js creates itself, such as the
 * status for a message over the limit. The call sends them with its own `sendStatus`, which is therefore replaced.
 */
export function statusInterceptor(change: (sent: SentStatus) => SentStatus): ServerInterceptor {
  return (_method, call) => {
    const send = call.sendStatus.bind(call);
    call.sendStatus = (sent) => send(change(sent));
    return new ServerInterceptingCall(call);
  };
}

/**
 * Resets the stream of a call whose status has been sent: grpc-js leaves the stream open until the client has sent its
 * whole request, and has no function that closes the stream. The servers of gRPC in C++ and Go send the same reset
 * (https://github.com/grpc/grpc/issues/1640, https://github.com/grpc/grpc-go/issues/834).
 */
export function resetStream(call: ServerInterceptingCallInterface): void {
  let inner = call as unknown as InnerCall;
  while (inner.nextCall !== undefined) inner = inner.nextCall;
  inner.stream?.close(constants.NGHTTP2_NO_ERROR);
}

/** Returns the HTTP/2 session of a call; grpc-js has no public API for it. */
export function sessionOf(wire: object): ServerHttp2Session | undefined {
  let { call: inner } = wire as { readonly call?: InnerCall };
  while (inner?.nextCall !== undefined) inner = inner.nextCall;
  return inner?.stream?.session as ServerHttp2Session | undefined;
}

/**
 * Calls `use` with each new connection of `server`. Must be called before a port is bound or a connection injector is
 * created.
 */
export function onSession(server: Server, use: (session: ServerHttp2Session) => void): void {
  const inner = server as unknown as InnerServer;
  const handlerOf = inner._sessionHandler.bind(server);
  inner._sessionHandler = (http2Server) => {
    const handle = handlerOf(http2Server);
    return (session) => {
      use(session);
      handle(session);
    };
  };
}

/** A server call of grpc-js. The call of an interceptor has `nextCall`; the innermost call has `stream`. */
interface InnerCall {
  readonly nextCall?: InnerCall;
  readonly stream?: ServerHttp2Stream;
}

/**
 * Returns the certificate of the peer, or undefined without one, and caches it on the socket: `getAuthContext()`
 * (https://github.com/grpc/grpc-node/issues/2730) builds the object again for every call, which takes a sixth of the
 * time of a small call.
 */
export function cachePeerCertificate(socket: TLSSocket): PeerCertificate | undefined {
  const certificate = socket.getPeerCertificate();
  if (!certificate.raw) return undefined;
  socket.getPeerCertificate = (() => certificate) as TLSSocket['getPeerCertificate'];
  return certificate;
}

/** The codes and messages for a stream that ended, or failed to start, without a status. */
const LOST_STREAMS: readonly (readonly [code: status, details: RegExp])[] = [
  [status.INTERNAL, /^(Received RST_STREAM with code|Failed to start HTTP\/2 stream)/],
  [status.UNKNOWN, /^Received HTTP status code 200$/],
];

/**
 * Whether an error means that a stream was lost with its connection. grpc-js reports INTERNAL, with the cause in the
 * message only, when the connection ended with a broken pipe or between two frames
 * (https://github.com/grpc/grpc-node/issues/1769, https://github.com/grpc/grpc-node/issues/2569), and UNKNOWN when the
 * last headers have no status: node:http2 sends empty trailers for a stream that is closed before its call has a status
 * (https://nodejs.org/docs/latest-v20.x/api/http2.html#event-wanttrailers).
 */
export function isLostStream(error: { readonly code: number; readonly details: string }): boolean {
  return LOST_STREAMS.some(([code, details]) => error.code === code && details.test(error.details));
}

/**
 * Extracts the cause from the error message of a failed connection, `No connection established. Last error: …`
 * (https://github.com/grpc/grpc-node/issues/2603); another message is itself the cause.
 */
export function connectErrorCause(message: string): string {
  const [, cause = message] = /Last error: (.*?)\.? Resolution note/.exec(message) ?? [];
  return cause.replace(/^Error: /, '').replace(/ \(\d{4}-\d\d-\d\dT[^)]*\)$/, '');
}
