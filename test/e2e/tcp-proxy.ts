import { once } from 'node:events';
import { connect, createServer, type Server, type Socket } from 'node:net';

/** A wire between two services that a test can cut or clog. */
export class TcpProxy {
  readonly #server: Server;
  readonly #target: () => string;
  readonly #sockets = new Set<Socket>();
  #mode: 'open' | 'cut' | 'clogged' = 'open';

  private constructor(target: () => string) {
    this.#target = target;
    this.#server = createServer((socket) => this.#accept(socket));
  }

  /** @param target `host:port`, asked for at each connection */
  static async start(target: () => string): Promise<TcpProxy> {
    const proxy = new TcpProxy(target);
    proxy.#server.listen(0, '127.0.0.1');
    await once(proxy.#server, 'listening');
    return proxy;
  }

  get address(): string {
    const address = this.#server.address();
    if (address === null || typeof address === 'string') throw new Error('The proxy is closed.');
    return `127.0.0.1:${address.port}`;
  }

  /** Lets everything through. */
  open(): void {
    this.#switch('open');
  }

  /** Whoever calls is turned away. */
  cut(): void {
    this.#switch('cut');
  }

  /** Whoever calls is heard by nobody. */
  clog(): void {
    this.#switch('clogged');
  }

  close(): void {
    this.#switch('cut');
    this.#server.close();
  }

  #switch(mode: 'open' | 'cut' | 'clogged'): void {
    this.#mode = mode;
    for (const socket of this.#sockets) socket.destroy();
  }

  #accept(socket: Socket): void {
    this.#keep(socket);
    if (this.#mode === 'cut') socket.destroy();
    if (this.#mode !== 'open') return;
    const [host = '', port = ''] = this.#target().split(':');
    const onward = connect(Number(port), host);
    this.#keep(onward);
    socket.pipe(onward).pipe(socket);
    socket.once('close', () => onward.destroy());
    onward.once('close', () => socket.destroy());
  }

  #keep(socket: Socket): void {
    this.#sockets.add(socket);
    socket.on('error', () => socket.destroy());
    socket.once('close', () => this.#sockets.delete(socket));
  }
}
