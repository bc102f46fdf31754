import type { Socket } from 'node:net';
import type { PeerCertificate, TLSSocket } from 'node:tls';
import { type Server, ServerCredentials } from '@grpc/grpc-js';
import type { Logger } from '@writ/telemetry';
import { openTlsDoor, type ServerTls } from './tls-door.ts';
import { uriNames } from './uri-names.ts';

/** How long calls on connections with replaced certificates may go on, ms. */
const DRAIN_MS = 10 * 60_000;
const MAX_TIMER_MS = 2 ** 31 - 1;

/** The way of connections into a grpc-js server. */
export interface GrpcEntrance {
  readonly enter: (socket: Socket) => void;
  close(): void;
}

/**
 * Lets connections into `server`: as they are, or through TLS. After the files have changed, clients
 * on old connections are asked to make new ones, and after a while made to. No connection outlives the
 * client's certificate.
 */
export function openEntrance(
  server: Server,
  tls: ServerTls | undefined,
  log: Logger,
): GrpcEntrance {
  const inject = () => server.createConnectionInjector(ServerCredentials.createInsecure());
  let injector = inject();
  if (tls === undefined) {
    const enter = (socket: Socket): void => injector.injectConnection(socket);
    return { enter, close: () => undefined };
  }
  let connections = new Set<TLSSocket>();
  const door = openTlsDoor({
    tls,
    protocols: ['h2'],
    log,
    accept: (socket) => {
      // Whoever speaks no HTTP/2 in the handshake would be answered in HTTP/1.
      if (socket.alpnProtocol !== 'h2') return void socket.destroy();
      const mine = connections;
      mine.add(socket);
      socket.once('close', () => mine.delete(socket));
      endWithCertificate(socket);
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
  return door;
}

function endWithCertificate(socket: TLSSocket): void {
  const shown = socket.getPeerCertificate();
  if (!shown.raw) return;
  // grpc-js asks for it at every call, and to make it anew takes a sixth of the call's time.
  socket.getPeerCertificate = (() => shown) as TLSSocket['getPeerCertificate'];
  const leftMs = Date.parse(shown.valid_to) - Date.now();
  const timer = setTimeout(() => socket.destroy(), Math.min(Math.max(leftMs, 0), MAX_TIMER_MS));
  timer.unref();
  socket.once('close', () => clearTimeout(timer));
}

const known = new WeakMap<object, readonly string[]>();

/** The URIs of a certificate that grpc-js tells of; undefined where none was shown. */
export function peerUris(shown: PeerCertificate | undefined): readonly string[] | undefined {
  if (shown === undefined) return undefined;
  const uris = known.get(shown) ?? uriNames(shown.subjectaltname);
  known.set(shown, uris);
  return uris;
}
