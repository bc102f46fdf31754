import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { type AddressInfo, connect, createServer, type Server, type Socket } from 'node:net';

/**
 * What a wire does: carry everything (each piece later by so many milliseconds), refuse and cut
 * connections, keep connections and hold back what is said, take new connections that nobody hears
 * (half-open), or answer whatever comes with random bytes.
 */
export type ProxyFault = 'none' | 'down' | 'stalled' | 'blackhole' | 'garbage' | WireDelay;

/** Everything arrives, `delayMs` later than it was said. */
interface WireDelay {
  readonly delayMs: number;
}

/** A TCP wire to somebody, which fails when it is told to. */
export interface FaultProxy {
  /** `host:port` to call instead of the one who answers. */
  readonly address: string;
  /** Pieces that a slow wire holds back now. */
  readonly held: number;
  /** Changes what the wire does; connections of before are cut, but for slow, late and sound ones. */
  fail(fault: ProxyFault): void;
  close(): Promise<void>;
}

/**
 * Lays a wire on a free loopback port.
 * @param target `host:port`; a function is asked at each connection
 */
export async function startFaultProxy(target: string | (() => string)): Promise<FaultProxy> {
  const wire = new Wire(typeof target === 'string' ? () => target : target);
  await wire.listen();
  return wire;
}

class Wire implements FaultProxy {
  readonly #target: () => string;
  readonly #server: Server;
  readonly #callers = new Set<Socket>();
  /** Let go when a slow wire is mended. */
  readonly #held = new Set<() => void>();
  #fault: ProxyFault = 'none';

  constructor(target: () => string) {
    this.#target = target;
    this.#server = createServer({ noDelay: true }, (caller) => this.#take(caller));
  }

  get address(): string {
    const { port } = this.#server.address() as AddressInfo;
    return `127.0.0.1:${port}`;
  }

  get held(): number {
    return this.#held.size;
  }

  async listen(): Promise<void> {
    this.#server.listen(0, '127.0.0.1');
    await once(this.#server, 'listening');
  }

  fail(fault: ProxyFault): void {
    const isKept = carries(this.#fault) && carries(fault);
    this.#fault = fault;
    if (fault === 'stalled' && isKept) return;
    const held = [...this.#held];
    this.#held.clear();
    if (isKept) for (const release of held) release();
    else for (const caller of this.#callers) caller.destroy();
  }

  async close(): Promise<void> {
    for (const caller of this.#callers) caller.destroy();
    this.#server.close();
    await once(this.#server, 'close');
  }

  #take(caller: Socket): void {
    this.#callers.add(caller);
    // What breaks here is what the callers are tried with.
    caller.on('error', () => caller.destroy());
    caller.on('close', () => this.#callers.delete(caller));
    if (this.#fault === 'down') {
      caller.destroy();
      return;
    }
    if (this.#fault === 'blackhole') {
      caller.resume();
      return;
    }
    const [host = '', port = ''] = this.#target().split(':');
    const callee = connect({ port: Number(port), host, noDelay: true });
    callee.on('error', () => caller.destroy());
    callee.on('close', () => caller.destroy());
    caller.on('close', () => callee.destroy());
    this.#carry(caller, callee);
    this.#carry(callee, caller);
  }

  #carry(from: Socket, to: Socket): void {
    // Goes on when whoever listens has caught up, so that no more is kept here than TCP would keep.
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
      } else if (typeof fault === 'object') {
        setTimeout(() => to.write(chunk), fault.delayMs);
      } else if (!to.write(chunk)) {
        from.pause();
      }
    });
  }
}

/** Whether connections live through a wire that does this. */
function carries(fault: ProxyFault): boolean {
  return typeof fault === 'object' || fault === 'none' || fault === 'stalled';
}
