import { createSocket } from 'node:dgram';
import { once } from 'node:events';
import { createServer } from 'node:net';

/**
 * Lowest port. The range is below the ephemeral port range, so that no outgoing connection takes the port of a server
 * that is being restarted.
 */
const FIRST = 20_000;
const LAST = 32_000;

/**
 * Returns free loopback ports for servers that keep their port across restarts. No other caller, in any
 * process, gets one of them while this process runs.
 */
export async function freePorts(
  count: number,
  { first = FIRST, last = LAST }: { readonly first?: number; readonly last?: number } = {},
): Promise<number[]> {
  const ports = new Set<number>();
  while (ports.size < count) {
    const port = first + Math.floor(Math.random() * (last - first));
    if (!ports.has(port) && (await claim(port)) && (await isFree(port))) ports.add(port);
  }
  return [...ports];
}

/** Binds the UDP port of the same number as a lock between processes. */
async function claim(port: number): Promise<boolean> {
  const lock = createSocket('udp4').unref();
  try {
    lock.bind({ address: '127.0.0.1', port, exclusive: true });
    await once(lock, 'listening');
    return true;
  } catch {
    lock.close();
    return false;
  }
}

async function isFree(port: number): Promise<boolean> {
  const server = createServer().listen(port, '127.0.0.1');
  try {
    await once(server, 'listening');
  } catch {
    return false;
  }
  server.close();
  await once(server, 'close');
  return true;
}
