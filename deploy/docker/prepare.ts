/**
 * `prepare FOLDER`: what services prove themselves with, each in a folder (or volume) of its own below
 * FOLDER: a signing key, and a certificate by an authority whose key lies in `FOLDER/authority`. Run
 * again, it renews the certificates; running services take the new ones up by themselves.
 */
import { copyFileSync, existsSync, mkdirSync, renameSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { issueInFolder, makeFolder } from '@writ/certs';
import { openSigner, SERVICE_NAMES } from '@writ/identity';
import { systemClock } from '@writ/kernel';

const DAY_MS = 86_400_000;
const LIFE_MS = 90 * DAY_MS;
const AUTHORITY_LIFE_MS = 3_650 * DAY_MS;

/** Makes or renews certificates, and signing keys where there are none. The authority, once made, stays. */
export async function prepare(folder: string): Promise<void> {
  const authority = join(folder, 'authority');
  const options = {
    dir: authority,
    trustDomain: 'writ.local',
    services: SERVICE_NAMES,
    dnsNames: ['localhost'],
    addresses: ['127.0.0.1'],
    lifeMs: LIFE_MS,
  };
  const written = existsSync(join(authority, 'ca.key'))
    ? await issueInFolder(options)
    : await makeFolder(options, AUTHORITY_LIFE_MS);
  for (const service of SERVICE_NAMES)
    await openSigner({ service, keyDir: join(folder, service, 'keys'), clock: systemClock });
  for (const { name, certFile, keyFile } of written) {
    const own = join(folder, name, 'tls');
    mkdirSync(own, { recursive: true, mode: 0o700 });
    replace(join(authority, 'ca.crt'), join(own, 'ca.crt'));
    replace(keyFile, join(own, 'service.key'));
    replace(certFile, join(own, 'service.crt'));
  }
}

function replace(from: string, to: string): void {
  const draft = join(dirname(to), '.new');
  copyFileSync(from, draft);
  renameSync(draft, to);
}

if (process.argv[2] !== undefined) await prepare(process.argv[2]);
