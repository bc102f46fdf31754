import { readFileSync } from 'node:fs';
import { checkServerIdentity, type PeerCertificate } from 'node:tls';
import type { TlsOptions } from '@nats-io/transport-node';
import type { NatsSettings } from './options.ts';

/**
 * The TLS options of a connection; undefined if neither a file nor a `tls://` URL requires TLS. A server without TLS
 * is rejected then, where the client library alone would fall back to cleartext. Files are read for every
 * connection, so that changes apply to the next one.
 */
export function tlsOptions({ tls, servers }: NatsSettings): TlsOptions | undefined {
  if (tls === undefined && !servers.some((server) => /^tls:/i.test(server))) return undefined;
  const { caFile, certFile, keyFile } = tls ?? {};
  const hosts = servers.map(hostOf);
  const options = {
    ...(caFile !== undefined && { ca: readFileSync(caFile, 'utf8') }),
    ...(certFile !== undefined && { cert: readFileSync(certFile, 'utf8') }),
    ...(keyFile !== undefined && { key: readFileSync(keyFile, 'utf8') }),
    // The library passes no host name to Node if the server is given by its address.
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
