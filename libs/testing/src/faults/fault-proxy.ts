import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { type AddressInfo, connect, createServer, type Server, type Socket } from 'node:net';

/**
 * What a proxy does: forward everything (`none`, or each chunk with a delay), reset connections (`down`),
 * keep connections and hold back all data (`stalled`), accept new connections and discard their data
 * (`blackhole`), or answer with random bytes (`garbage`).
 */
export type ProxyFault = 'none' | 'down' | 'stalled' | 'blackhole' | 'garbage' | ProxyDelay;

/** Forwards every chunk with a delay of `delayMs`. */
interface ProxyDelay {
  readonly delayMs: number;
}

/** A TCP proxy that injects faults. */
export interface FaultProxy {
  /** `host:port` for clients to call instead of the target. */
  readonly address: string;
  /** Number of chunks that the proxy holds back now, because it is stalled or delays them. */
  readonly held: number;
  /**
   * Changes the fault. Existing connections are reset unless both the previous and the new fault are `none`, `stalled`
   * or a delay.
   */
  fail(fault: ProxyFault): void;
  close(): Promise<void>;
}

/**
 * Starts a proxy on a free loopback port.
 * @param target `host:port`; a function is called for each connection
 */
export async function startFaultProxy(target: string | (() => string)): Promise<FaultProxy> {
  const proxy = new TcpProxy(typeof target === 'string' ? () => target : target);
  await proxy.listen();
  return proxy;
}

class TcpProxy implements FaultProxy {
  readonly #target: () => string;
  readonly #server: Server;
  readonly #clients = new Set<Socket>();
  /** Each entry forwards one held chunk. */
  readonly #held = new Set<() => void>();
  /** Number of chunks that wait for the end of their delay. */
  #delayed = 0;
  #fault: ProxyFault = 'none';

  constructor(target: () => string) {
    this.#target = target;
    this.#server = createServer({ noDelay: true }, (client) => this.#accept(client));
  }

  get address(): string {
    const { port } = this.#server.address() as AddressInfo;
    return `127.0.0.1:${port}`;
  }

  get held(): number {
    return this.#held.size + this.#delayed;
  }

  async listen(): Promise<void> {
    this.#server.listen(0, '127.0.0.1');
    await once(this.#server, 'listening');
  }

  fail(fault: ProxyFault): void {
    const keepConnections = keepsConnections(this.#fault) && keepsConnections(fault);
    this.#fault = fault;
    if (fault === 'stalled' && keepConnections) return;
    const held = [...this.#held];
    this.#held.clear();
    if (keepConnections) for (const release of held) release();
    else for (const client of this.#clients) client.destroy();
  }

  async close(): Promise<void> {
    for (const client of this.#clients) client.destroy();
    this.#server.close();
    await once(this.#server, 'close');
  }

  #accept(client: Socket): void {
    this.#clients.add(client);
    // The proxy ignores connection errors, because the code under test must handle them.
    client.on('error', () => client.destroy());
    client.on('close', () => this.#clients.delete(client));
    if (this.#fault === 'down') {
      client.destroy();
      return;
    }
    if (this.#fault === 'blackhole') {
      client.resume();
      return;
    }
    const [host = '', port = ''] = this.#target().split(':');
    const upstream = connect({ port: Number(port), host, noDelay: true });
    upstream.on('error', () => client.destroy());
    upstream.on('close', () => client.destroy());
    client.on('close', () => upstream.destroy());
    this.#forward(client, upstream);
    this.#forward(upstream, client);
  }

  #forward(from: Socket, to: Socket): void {
    let delayed = 0;
    let dueAt = 0;
    // Back-pressure: the proxy buffers no more than TCP would.
    to.on('drain', () => {
      if (this.#fault !== 'stalled') from.resume();
    });
    from.on('data', (chunk) => {
      const fault = this.#fault;
      if (fault === 'garbage') {
        from.write(randomBytes(64));
      } else if (fault === 'stalled') {
        from.pause();
        this.#held.add(() => {
          to.write(chunk);
          from.resume();
        });
      } else if (typeof fault === 'object' || delayed > 0) {
        // Chunks are queued behind delayed ones even after the fault has been removed, so that their order is kept.
        const delayMs = typeof fault === 'object' ? fault.delayMs : 0;
        dueAt = Math.max(dueAt, performance.now() + delayMs);
        delayed += 1;
        this.#delayed += 1;
        setTimeout(() => {
          delayed -= 1;
          this.#delayed -= 1;
          to.write(chunk);
        }, dueAt - performance.now());
      } else if (!to.write(chunk)) {
        from.pause();
      }
    });
  }
}

function keepsConnections(fault: ProxyFault): boolean {
  return typeof fault === 'object' || fault === 'none' || fault === 'stalled';
}
