import { constants } from 'node:crypto';
import type { Socket } from 'node:net';
import { createServer, type SecureContextOptions, type TLSSocket } from 'node:tls';
import type { Logger } from '@writ/telemetry';
import type { TlsFiles } from './tls-files.ts';

/** How a port speaks TLS. */
export interface ServerTls {
  readonly files: TlsFiles;
  /** `required`: whoever shows no certificate of the authorities is not let in. */
  readonly clientCertificates: 'required' | 'none';
}

interface DoorOptions {
  readonly tls: ServerTls;
  /** What may be spoken inside, the best first. */
  readonly protocols: readonly ('h2' | 'http/1.1')[];
  readonly log: Logger;
  /** Takes a connection whose handshake went well. */
  readonly accept: (socket: TLSSocket) => void;
  /** New files are in use: connections that were made with the old ones should end. */
  readonly onRotation: () => void;
}

/** The TLS of a port that somebody else listens on. */
export interface TlsDoor {
  /** Begins the handshake on a new connection. */
  readonly enter: (socket: Socket) => void;
  close(): void;
}

const HANDSHAKE_MS = 10_000;

/** Opens the TLS of a port; changed files hold for whoever comes next. */
export function openTlsDoor({ tls, protocols, log, accept, onRotation }: DoorOptions): TlsDoor {
  const isMutual = tls.clientCertificates === 'required';
  const fixed: SecureContextOptions = {
    minVersion: isMutual ? 'TLSv1.3' : 'TLSv1.2',
    // A ticket would let a peer in whose authority is trusted no more.
    ...(isMutual && { secureOptions: constants.SSL_OP_NO_TICKET }),
  };
  const server = createServer({
    ...tls.files.current,
    ...fixed,
    ALPNProtocols: [...protocols],
    requestCert: isMutual,
    rejectUnauthorized: isMutual,
    handshakeTimeout: HANDSHAKE_MS,
  });
  server.on('secureConnection', accept);
  server.on('tlsClientError', (error, socket) => {
    const { code } = error as NodeJS.ErrnoException;
    const from = socket.remoteAddress;
    // Whoever went away in silence may have looked whether the port is open, as probes do every few seconds.
    if (code === 'ECONNRESET') log.debug({ from }, 'A connection was closed before its handshake.');
    else log.info({ code, from }, 'A connection was refused, since its TLS handshake failed.');
  });
  const forget = tls.files.onChange((material) => {
    server.setSecureContext({ ...material, ...fixed });
    onRotation();
  });
  return {
    enter: (socket) => void server.emit('connection', socket),
    close: forget,
  };
}
