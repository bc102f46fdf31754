import { once } from 'node:events';
import { type AddressInfo, connect, createServer, type Socket } from 'node:net';

/** A proxy to a server that, while paused, leaves new connections unanswered instead of refusing them. */
export interface PausableProxy {
  /** `host:port` of the proxy. */
  readonly address: string;
  /** Leaves new connections unanswered. */
  pause(): void;
  /** Connects waiting and new clients. */
  resume(): void;
  close(): void;
}

/** Opens a proxy on a loopback port to `host:port`. */
export async function openPausableProxy(target: string): Promise<PausableProxy> {
  const [host = '', port = ''] = target.split(':');
  const sockets = new Set<Socket>();
  let opened = Promise.withResolvers<void>();
  opened.resolve();
  const server = createServer(async (caller) => {
    sockets.add(caller);
    caller.on('error', () => caller.destroy());
    await opened.promise;
    const callee = connect(Number(port), host);
    callee.on('error', () => caller.destroy());
    callee.on('close', () => caller.destroy());
    caller.on('close', () => callee.destroy());
    caller.pipe(callee).pipe(caller);
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    address: `127.0.0.1:${(server.address() as AddressInfo).port}`,
    pause: () => {
      opened = Promise.withResolvers();
    },
    resume: () => opened.resolve(),
    close: () => {
      opened.resolve();
      for (const socket of sockets) socket.destroy();
      server.close();
    },
  };
}
