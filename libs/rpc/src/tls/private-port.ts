import { BlockList, isIP } from 'node:net';
import { PreconditionError } from '@writ/kernel';
import type { RpcServerOptions } from '../server/rpc-server.ts';

const LOOPBACK = new BlockList();
LOOPBACK.addSubnet('127.0.0.0', 8);
LOOPBACK.addAddress('::1', 'ipv6');

/** Whether `host` is a loopback address or `localhost`. */
export function isLoopback(host: string): boolean {
  const family = isIP(host);
  if (family === 0) return host === 'localhost';
  return LOOPBACK.check(host, family === 6 ? 'ipv6' : 'ipv4');
}

/**
 * Requires TLS, a loopback address, or explicitly allowed cleartext (SYS-4).
 * @throws PreconditionError CLEARTEXT_NOT_ALLOWED
 */
export function assertPrivate({
  host,
  tls,
  cleartext,
}: Pick<RpcServerOptions, 'host' | 'tls' | 'cleartext'>): void {
  if (tls !== undefined || cleartext === 'anywhere' || isLoopback(host)) return;
  throw new PreconditionError(
    'CLEARTEXT_NOT_ALLOWED',
    `TLS is required to listen on ${host}: set WRIT_TLS_CERT_FILE, WRIT_TLS_KEY_FILE and WRIT_TLS_CA_FILE, or WRIT_ALLOW_CLEARTEXT=true in a network without untrusted hosts.`,
    { host },
  );
}
