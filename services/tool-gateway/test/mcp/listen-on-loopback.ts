import { type AddressInfo, type ListenOptions, Server } from 'node:net';

// The server under test listens wherever it can; a test listens on loopback, and has to know the port.
const listen: (options: ListenOptions, done?: () => void) => Server = Server.prototype.listen;
Object.defineProperty(Server.prototype, 'listen', {
  value(this: Server, port: unknown, done?: () => void): Server {
    this.once('listening', () => {
      process.stdout.write(`port ${(this.address() as AddressInfo).port}\n`);
    });
    return listen.call(this, { port: Number(port), host: '127.0.0.1' }, done);
  },
});
