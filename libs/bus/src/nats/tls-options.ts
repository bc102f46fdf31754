import { readFileSync } from 'node:fs';
import { checkServerIdentity, type PeerCertificate } from 'node:tls';
import type { TlsOptions } from '@nats-io/transport-node';
import type { NatsSettings } from './options.ts';

/**
 * How a connection speaks TLS; undefined when neither a file nor a `tls://` asks for it. Where one
 * does, a server that offers none is refused: the client library alone would go on in cleartext. Files
 * are read for every connection, so that changed ones hold for the next.
 */
export function tlsOptions({ tls, servers }: NatsSettings): TlsOptions | undefined {
  if (tls === undefined && !servers.some((server) => /^tls:/i.test(server))) return undefined;
  const { caFile, certFile, keyFile } = tls ?? {};
  const hosts = servers.map(hostOf);
  const options = {
    ...(caFile !== undefined && { ca: readFileSync(caFile, 'utf8') }),
    ...(certFile !== undefined && { cert: readFileSync(certFile, 'utf8') }),
    ...(keyFile !== undefined && { key: readFileSync(keyFile, 'utf8') }),
    // The library tells Node no name when the server is known by its address.
    checkServerIdentity: (_: string, shown: PeerCertificate): Error | undefined => {
      const problems = hosts.map((host) => checkServerIdentity(host, shown));
      return problems.every(Boolean) ? problems[0] : undefined;
    },
  };
  return options;
}

function hostOf(server: string): string {
  const { hostname } = new URL(server.includes('://') ? server : `nats://${server}`);
  return hostname.replace(/^\[(.*)\]$/, '$1');
}
