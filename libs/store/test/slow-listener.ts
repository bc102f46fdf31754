import { once } from 'node:events';
import { type AddressInfo, connect, createServer, type Socket } from 'node:net';

/** A way to a server whose callers, once it is shut, wait at the door instead of being refused. */
export interface PatientDoor {
  /** `host:port` to call instead of the server. */
  readonly address: string;
  /** Whoever calls from now on waits. */
  shut(): void;
  /** Lets in who waits, and whoever comes. */
  open(): void;
  close(): void;
}

/** Opens a door on a loopback port to `host:port`. */
export async function openPatientDoor(target: string): Promise<PatientDoor> {
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
    shut: () => {
      opened = Promise.withResolvers();
    },
    open: () => opened.resolve(),
    close: () => {
      opened.resolve();
      for (const socket of sockets) socket.destroy();
      server.close();
    },
  };
}
