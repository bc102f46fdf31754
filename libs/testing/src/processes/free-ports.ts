import { createSocket } from 'node:dgram';
import { once } from 'node:events';
import { createServer } from 'node:net';

/**
 * Below the ports that systems give to whoever calls: a server that is down for a moment finds its own
 * free again, and nobody who calls it meanwhile is connected with himself.
 */
const FIRST = 20_000;
const LAST = 32_000;

/**
 * Loopback ports that nobody listens on now, for servers that must keep theirs over restarts. Nobody who
 * asks here, in any process, is given one of them again while this process lives.
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

/** Takes the UDP port of the same number, which nobody else wants, as a sign for other processes. */
async function claim(port: number): Promise<boolean> {
  const sign = createSocket('udp4').unref();
  try {
    sign.bind({ address: '127.0.0.1', port, exclusive: true });
    await once(sign, 'listening');
    return true;
  } catch {
    sign.close();
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
