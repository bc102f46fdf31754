import { constants } from 'node:crypto';
import type { Socket } from 'node:net';
import { createServer, type SecureContextOptions, type TLSSocket } from 'node:tls';
import type { Logger } from '@writ/telemetry';
import type { TlsFiles } from './tls-files.ts';

/** TLS settings of a port. */
export interface ServerTls {
  readonly files: TlsFiles;
  /** `required`: clients must present a certificate issued by one of the authorities. */
  readonly clientCertificates: 'required' | 'none';
}

interface AcceptorOptions {
  readonly tls: ServerTls;
  /** ALPN protocols in order of preference. */
  readonly protocols: readonly ('h2' | 'http/1.1')[];
  readonly log: Logger;
  /** Receives a connection after a successful handshake. */
  readonly onSecure: (socket: TLSSocket) => void;
  /** Called after the TLS files were replaced: existing connections should be drained. */
  readonly onRotation: () => void;
}

/** Performs TLS handshakes on accepted sockets. */
export interface TlsAcceptor {
  /** Starts the handshake on a new connection. */
  readonly accept: (socket: Socket) => void;
  close(): void;
}

const HANDSHAKE_TIMEOUT_MS = 10_000;

/** Creates a TLS acceptor; changed files apply to new connections. */
export function createTlsAcceptor(options: AcceptorOptions): TlsAcceptor {
  const { tls, protocols, log, onSecure, onRotation } = options;
  const isMutual = tls.clientCertificates === 'required';
  const fixed: SecureContextOptions = {
    minVersion: isMutual ? 'TLSv1.3' : 'TLSv1.2',
    // A session ticket would admit a peer whose authority is no longer trusted.
    ...(isMutual && { secureOptions: constants.SSL_OP_NO_TICKET }),
  };
  const server = createServer({
    ...tls.files.current,
    ...fixed,
    ALPNProtocols: [...protocols],
    requestCert: isMutual,
    rejectUnauthorized: isMutual,
    handshakeTimeout: HANDSHAKE_TIMEOUT_MS,
  });
  server.on('secureConnection', onSecure);
  server.on('tlsClientError', (error, socket) => {
    const { code } = error as NodeJS.ErrnoException;
    const from = socket.remoteAddress;
    // TCP health probes connect every few seconds and close the connection without a handshake.
    if (code === 'ECONNRESET') log.debug({ from }, 'connection closed before its TLS handshake');
    else log.info({ code, from }, 'TLS handshake failed; connection refused');
  });
  const unsubscribe = tls.files.onChange((material) => {
    server.setSecureContext({ ...material, ...fixed });
    onRotation();
  });
  return {
    accept: (socket) => void server.emit('connection', socket),
    close: unsubscribe,
  };
}
