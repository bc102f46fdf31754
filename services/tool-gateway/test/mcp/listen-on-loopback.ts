import { type AddressInfo, type ListenOptions, Server } from 'node:net';

// Makes a server that would listen on every interface listen on loopback, and prints its port.
const listen: (options: ListenOptions, done?: () => void) => Server = Server.prototype.listen;
Object.defineProperty(Server.prototype, 'listen', {
  value(this: Server, port: unknown, done?: () => void): Server {
    this.once('listening', () => {
      process.stdout.write(`port ${(this.address() as AddressInfo).port}\n`);
    });
    return listen.call(this, { port: Number(port), host: '127.0.0.1' }, done);
  },
});
