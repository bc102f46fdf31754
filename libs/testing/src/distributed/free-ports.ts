import { once } from 'node:events';
import { createServer } from 'node:net';

/**
 * Below the ports that systems give to whoever calls: a server that is down for a moment finds its own
 * free again, and nobody who calls it meanwhile is connected with himself.
 */
const FIRST = 20_000;
const LAST = 32_000;

/** Loopback ports that nobody listens on now, for servers that must keep theirs over restarts. */
export async function freePorts(count: number): Promise<number[]> {
  const ports = new Set<number>();
  while (ports.size < count) {
    const port = FIRST + Math.floor(Math.random() * (LAST - FIRST));
    if (!ports.has(port) && (await isFree(port))) ports.add(port);
  }
  return [...ports];
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
