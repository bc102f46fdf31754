import { once } from 'node:events';
import { type AddressInfo, createServer, type Server, type Socket } from 'node:net';
import { UnavailableError } from '@writ/kernel';
import type { Telemetry } from '@writ/telemetry';

/** How long connections may take to close by themselves once all calls are over, ms. */
const GOODBYE_MS = 500;

/** How long a connection may be silent before the system asks whether anybody is there, ms. */
const SILENT_MS = 60_000;
/** Least time between two lines about refused connections, ms. */
const TELL_EVERY_MS = 60_000;

interface ListenerOptions {
  readonly host: string;
  /** 0 takes a free one. */
  readonly port: number;
  /** The variable that sets the port, for the sentence of a failure. */
  readonly portSetting?: string | undefined;
  /** Takes every connection. */
  readonly accept: (socket: Socket) => void;
  readonly limits: { readonly maxConnections: number };
  readonly telemetry: Pick<Telemetry, 'log'>;
}

/** A TCP port that is listened on, and every connection that came in through it. */
export class Listener {
  readonly host: string;
  readonly port: number;
  readonly #server: Server;
  readonly #sockets: ReadonlySet<Socket>;
  #closed: Promise<void> | undefined;

  private constructor(host: string, server: Server, sockets: ReadonlySet<Socket>) {
    this.host = host;
    this.port = (server.address() as AddressInfo).port;
    this.#server = server;
    this.#sockets = sockets;
  }

  /**
   * Listens; connections beyond the limit are closed at once.
   * @throws UnavailableError PORT_IN_USE, or LISTEN_FAILED for another reason
   */
  static async open(options: ListenerOptions): Promise<Listener> {
    const { host, port, portSetting, accept, limits, telemetry } = options;
    const sockets = new Set<Socket>();
    const server = createServer(
      { noDelay: true, keepAlive: true, keepAliveInitialDelay: SILENT_MS },
      (socket) => {
        sockets.add(socket);
        socket.once('close', () => sockets.delete(socket));
        accept(socket);
      },
    );
    server.maxConnections = limits.maxConnections;
    let toldAt = Number.NEGATIVE_INFINITY;
    server.on('drop', () => {
      if (performance.now() - toldAt < TELL_EVERY_MS) return;
      toldAt = performance.now();
      const limit = limits.maxConnections;
      telemetry.log.warn({ port, limit }, 'Connections are refused: there are as many as may be.');
    });
    try {
      server.listen(port, host);
      await once(server, 'listening');
    } catch (error) {
      throw cannotListen(host, port, portSetting, error);
    }
    return new Listener(host, server, sockets);
  }

  /** `host:port`, with brackets around an IPv6 host. */
  get address(): string {
    return this.host.includes(':') ? `[${this.host}]:${this.port}` : `${this.host}:${this.port}`;
  }

  /** Closes the port; connections stay. Resolves when the last of them is closed too. */
  stopAccepting(): Promise<void> {
    this.#closed ??= new Promise((resolve) => this.#server.close(() => resolve()));
    return this.#closed;
  }

  /** Closes the port; connections that are still open after a moment are destroyed. */
  async close(): Promise<void> {
    const impatience = setTimeout(() => {
      for (const socket of this.#sockets) socket.destroy();
    }, GOODBYE_MS);
    await this.stopAccepting();
    clearTimeout(impatience);
  }
}

function cannotListen(
  host: string,
  port: number,
  setting: string | undefined,
  cause: unknown,
): UnavailableError {
  const code = cause instanceof Error && 'code' in cause ? String(cause.code) : 'unknown';
  const another = setting === undefined ? 'choose another port' : `set ${setting} to another one`;
  const where = { host, port: String(port) };
  return code === 'EADDRINUSE'
    ? new UnavailableError(
        'PORT_IN_USE',
        `Port ${port} on ${host} is in use; stop what listens there, or ${another}.`,
        where,
        { cause },
      )
    : new UnavailableError(
        'LISTEN_FAILED',
        `Listening on ${host}:${port} failed (${code}); choose an address that this machine has.`,
        { ...where, code },
        { cause },
      );
}
