import { chmodSync, chownSync, copyFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { serverUser } from './postgres-server.ts';

/** What a PostgreSQL shows to whoever connects; files in PEM. */
export interface PostgresTls {
  readonly certFile: string;
  readonly keyFile: string;
  /** The authorities that it asks callers for a certificate of; default: it asks for none. */
  readonly caFile?: string;
  /** Its pg_hba.conf; default: whoever comes from this machine and speaks TLS. */
  readonly hba?: string;
}

const FOR_ANYBODY = 'hostssl all all 127.0.0.1/32 trust\n';

/** Settings of a server with these files beside its data. */
export function tlsSettings({ caFile }: PostgresTls): Readonly<Record<string, string>> {
  return { ssl: 'on', ...(caFile !== undefined && { ssl_ca_file: 'root.crt' }) };
}

/** Gives the server of a folder its certificate, and lets nobody in without TLS. */
export async function requireTls(
  folder: string,
  { certFile, keyFile, caFile, hba = FOR_ANYBODY }: PostgresTls,
): Promise<void> {
  const as = await serverUser();
  const data = join(folder, 'data');
  for (const [from, name] of [
    [certFile, 'server.crt'],
    [keyFile, 'server.key'],
    ...(caFile === undefined ? [] : [[caFile, 'root.crt'] as const]),
  ] as const) {
    const file = join(data, name);
    copyFileSync(from, file);
    chmodSync(file, 0o600);
    if (as !== undefined) chownSync(file, as.uid, as.gid);
  }
  writeFileSync(join(data, 'pg_hba.conf'), hba);
}
