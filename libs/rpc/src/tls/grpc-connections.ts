import type { Socket } from 'node:net';
import type { PeerCertificate, TLSSocket } from 'node:tls';
import { type Server, ServerCredentials } from '@grpc/grpc-js';
import type { Logger } from '@writ/telemetry';
import { cachePeerCertificate } from '../grpc-js-internals.ts';
import { MAX_TIMER_MS } from '../limits.ts';
import { createTlsAcceptor, type ServerTls } from './tls-acceptor.ts';
import { uriNames } from './uri-names.ts';

/** Time for calls on connections with replaced certificates to finish, ms. */
const DRAIN_MS = 10 * 60_000;

/** Passes accepted sockets to a grpc-js server. */
export interface GrpcConnections {
  readonly accept: (socket: Socket) => void;
  close(): void;
}

/**
 * Passes sockets to `server`, in cleartext or through TLS. When the TLS files change, existing
 * connections receive GOAWAY and are destroyed after a grace period. A connection is closed when the
 * client certificate expires.
 */
export function grpcConnections(
  server: Server,
  tls: ServerTls | undefined,
  log: Logger,
): GrpcConnections {
  const inject = () => server.createConnectionInjector(ServerCredentials.createInsecure());
  let injector = inject();
  if (tls === undefined) {
    const accept = (socket: Socket): void => injector.injectConnection(socket);
    return { accept, close: () => undefined };
  }
  let connections = new Set<TLSSocket>();
  return createTlsAcceptor({
    tls,
    protocols: ['h2'],
    log,
    onSecure: (socket) => {
      // Node would respond in HTTP/1 to a client that did not negotiate HTTP/2.
      if (socket.alpnProtocol !== 'h2') return void socket.destroy();
      const current = connections;
      current.add(socket);
      socket.once('close', () => current.delete(socket));
      closeAtExpiry(socket);
      injector.injectConnection(socket);
    },
    onRotation: () => {
      const replaced = connections;
      connections = new Set();
      injector.destroy();
      injector = inject();
      setTimeout(() => {
        for (const socket of replaced) socket.destroy();
      }, DRAIN_MS).unref();
    },
  });
}

/** Destroys a connection when its client certificate expires; a timer cannot wait longer than 24 days. */
export function closeAtExpiry(socket: TLSSocket): void {
  const shown = cachePeerCertificate(socket);
  if (shown === undefined) return;
  const expiresAt = Date.parse(shown.valid_to);
  let timer: NodeJS.Timeout;
  const wait = (): void => {
    const leftMs = expiresAt - Date.now();
    timer =
      leftMs > MAX_TIMER_MS
        ? setTimeout(wait, MAX_TIMER_MS)
        : setTimeout(() => socket.destroy(), Math.max(leftMs, 0));
    timer.unref();
  };
  wait();
  socket.once('close', () => clearTimeout(timer));
}

const known = new WeakMap<object, readonly string[]>();

/** Returns the URI names of a client certificate; undefined without a certificate. */
export function peerUris(shown: PeerCertificate | undefined): readonly string[] | undefined {
  if (shown === undefined) return undefined;
  const uris = known.get(shown) ?? uriNames(shown.subjectaltname);
  known.set(shown, uris);
  return uris;
}
