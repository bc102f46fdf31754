import { once } from 'node:events';
import { type AddressInfo, createServer, type Server, type Socket } from 'node:net';
import { UnavailableError } from '@writ/kernel';
import type { Telemetry } from '@writ/telemetry';
import { PacedQueue } from '../calls/paced-queue.ts';
import { OpenConnections } from './open-connections.ts';

/** Time for connections to close after the last call has ended, ms. */
const CLOSE_GRACE_MS = 500;
/** Idle time before TCP keepalive probes, ms. */
const KEEPALIVE_DELAY_MS = 60_000;
/** Connections that may wait to be accepted; the system permits 4,096 by default. */
const BACKLOG = 4_096;
/** Minimum interval between two log lines about refused connections, ms. */
const WARN_INTERVAL_MS = 60_000;

interface ListenerOptions {
  readonly host: string;
  /** 0 selects a free port. */
  readonly port: number;
  /** The environment variable that sets the port, for error messages. */
  readonly portSetting?: string | undefined;
  /** Receives every connection. */
  readonly accept: (socket: Socket) => void;
  readonly limits: { readonly maxConnections: number };
  readonly telemetry: Pick<Telemetry, 'log'>;
}

/** A TCP listener and its open connections. */
export class Listener {
  readonly host: string;
  readonly port: number;
  readonly #server: Server;
  readonly #connections: OpenConnections;
  #closed: Promise<void> | undefined;

  private constructor(host: string, server: Server, connections: OpenConnections) {
    this.host = host;
    this.port = (server.address() as AddressInfo).port;
    this.#server = server;
    this.#connections = connections;
  }

  /**
   * Starts to listen. Near the connection limit, connections that receive no data are closed; at the limit, new
   * connections are refused.
   * @throws UnavailableError PORT_IN_USE, or LISTEN_FAILED for another reason
   */
  static async open(options: ListenerOptions): Promise<Listener> {
    const { host, port, portSetting, accept, limits, telemetry } = options;
    const connections = new OpenConnections(limits.maxConnections);
    // One event loop iteration can accept thousands of connections; a Halt call must not wait until all of them have an
    // HTTP/2 session (BD-2).
    const turns = new PacedQueue();
    const ignore = (): void => undefined;
    const server = createServer(
      { noDelay: true, keepAlive: true, keepAliveInitialDelay: KEEPALIVE_DELAY_MS },
      (socket) => {
        connections.add(socket, performance.now());
        socket.on('error', ignore);
        turns.add(() => {
          socket.off('error', ignore);
          if (!socket.destroyed) accept(socket);
        });
      },
    );
    server.maxConnections = limits.maxConnections;
    let warnedAt = Number.NEGATIVE_INFINITY;
    server.on('drop', () => {
      connections.closeQuiet(performance.now());
      if (performance.now() - warnedAt < WARN_INTERVAL_MS) return;
      warnedAt = performance.now();
      const limit = limits.maxConnections;
      telemetry.log.warn({ port, limit }, 'connection limit reached; refusing new connections');
    });
    try {
      server.listen(port, host, BACKLOG);
      await once(server, 'listening');
    } catch (error) {
      throw cannotListen(host, port, portSetting, error);
    }
    return new Listener(host, server, connections);
  }

  /** `host:port`, with brackets around an IPv6 host. */
  get address(): string {
    return this.host.includes(':') ? `[${this.host}]:${this.port}` : `${this.host}:${this.port}`;
  }

  /** Closes the port but not its connections. Resolves when the last connection is closed. */
  stopAccepting(): Promise<void> {
    this.#closed ??= new Promise((resolve) => this.#server.close(() => resolve()));
    return this.#closed;
  }

  /** Closes the port and destroys the connections that are still open after a grace period. */
  async close(): Promise<void> {
    const timer = setTimeout(() => this.#connections.destroy(), CLOSE_GRACE_MS);
    await this.stopAccepting();
    clearTimeout(timer);
  }
}

function cannotListen(
  host: string,
  port: number,
  setting: string | undefined,
  cause: unknown,
): UnavailableError {
  const code = cause instanceof Error && 'code' in cause ? String(cause.code) : 'unknown';
  const remedy = setting === undefined ? 'choose another port' : `set ${setting} to another port`;
  const where = { host, port: String(port) };
  return code === 'EADDRINUSE'
    ? new UnavailableError(
        'PORT_IN_USE',
        `Port ${port} on ${host} is in use; stop the process that listens there, or ${remedy}.`,
        where,
        { cause },
      )
    : new UnavailableError(
        'LISTEN_FAILED',
        `Failed to listen on ${host}:${port} (${code}); use another address or port.`,
        { ...where, code },
        { cause },
      );
}
