import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { type AddressInfo, connect, createServer, type Server, type Socket } from 'node:net';

/**
 * What a wire does: carry everything, refuse and cut connections, take everything and give nothing
 * back, or answer whatever comes with random bytes.
 */
export type WireFault = 'none' | 'down' | 'slow' | 'garbage';

/** A TCP wire to somebody, which fails when it is told to. */
export interface FaultyWire {
  /** `host:port` to call instead of the one who answers. */
  readonly address: string;
  /** Changes what the wire does; connections of the fault before are cut, except that slow ones go on. */
  fail(fault: WireFault): void;
  close(): Promise<void>;
}

/** Lays a wire to `target`, `host:port`, on a free loopback port. */
export async function startFaultyWire(target: string): Promise<FaultyWire> {
  const wire = new Wire(target);
  await wire.listen();
  return wire;
}

class Wire implements FaultyWire {
  readonly #target: string;
  readonly #server: Server;
  readonly #callers = new Set<Socket>();
  /** Let go when a slow wire is mended. */
  readonly #held = new Set<() => void>();
  #fault: WireFault = 'none';

  constructor(target: string) {
    this.#target = target;
    this.#server = createServer((caller) => this.#take(caller));
  }

  get address(): string {
    const { port } = this.#server.address() as AddressInfo;
    return `127.0.0.1:${port}`;
  }

  async listen(): Promise<void> {
    this.#server.listen(0, '127.0.0.1');
    await once(this.#server, 'listening');
  }

  fail(fault: WireFault): void {
    this.#fault = fault;
    if (fault === 'slow') return;
    const held = [...this.#held];
    this.#held.clear();
    if (fault === 'none' && held.length > 0) {
      for (const release of held) release();
      return;
    }
    for (const caller of this.#callers) caller.destroy();
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
    const [host = '', port = ''] = this.#target.split(':');
    const callee = connect(Number(port), host);
    callee.on('error', () => caller.destroy());
    callee.on('close', () => caller.destroy());
    caller.on('close', () => callee.destroy());
    this.#carry(caller, callee);
    this.#carry(callee, caller);
  }

  #carry(from: Socket, to: Socket): void {
    from.on('data', (chunk) => {
      if (this.#fault === 'garbage') {
        from.write(randomBytes(64));
        return;
      }
      if (this.#fault === 'slow') {
        from.pause();
        this.#held.add(() => {
          to.write(chunk);
          from.resume();
        });
        return;
      }
      to.write(chunk);
    });
  }
}
