import { chownSync, copyFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { serverUser } from './postgres-server.ts';

/** What a PostgreSQL shows to whoever connects; files in PEM. */
export interface PostgresTls {
  readonly certFile: string;
  readonly keyFile: string;
}

/** Settings of a server with these files beside its data. */
export const TLS_SETTINGS = { ssl: 'on' } as const;

/** Gives the server of a folder its certificate, and lets nobody in without TLS. */
export async function requireTls(
  folder: string,
  { certFile, keyFile }: PostgresTls,
): Promise<void> {
  const as = await serverUser();
  const data = join(folder, 'data');
  for (const [from, name] of [
    [certFile, 'server.crt'],
    [keyFile, 'server.key'],
  ] as const) {
    const file = join(data, name);
    copyFileSync(from, file);
    if (as !== undefined) chownSync(file, as.uid, as.gid);
  }
  writeFileSync(join(data, 'pg_hba.conf'), 'hostssl all all 127.0.0.1/32 trust\n');
}
