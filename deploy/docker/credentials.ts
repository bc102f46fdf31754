/** Keys and certificates of an installation. */
import { chmodSync, copyFileSync, existsSync, mkdirSync, renameSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { createFolder, issueInFolder } from '@writ/certs';
import { openSigner, SERVICE_NAMES } from '@writ/identity';
import { systemClock } from '@writ/kernel';

const DAY_MS = 86_400_000;
const LIFE_MS = 90 * DAY_MS;
const AUTHORITY_LIFE_MS = 3_650 * DAY_MS;
/** Names of the servers that services connect to. The certificate of each server also names loopback. */
const SERVERS: readonly string[] = ['nats', 'postgres'];

/**
 * Issues or renews certificates, and generates missing signing keys. An existing authority is kept.
 *
 * @param hosts further host names of every certificate
 */
export async function prepare(folder: string, hosts: readonly string[] = []): Promise<void> {
  const authority = join(folder, 'authority');
  const options = {
    dir: authority,
    trustDomain: 'writ.local',
    services: SERVICE_NAMES,
    others: SERVERS,
    dnsNames: ['localhost', ...hosts],
    addresses: ['127.0.0.1'],
    lifeMs: LIFE_MS,
  };
  const written = existsSync(join(authority, 'ca.key'))
    ? await issueInFolder(options)
    : await createFolder(options, AUTHORITY_LIFE_MS);
  for (const service of SERVICE_NAMES)
    await openSigner({ service, keyDir: join(folder, service, 'keys'), clock: systemClock });
  for (const { name, certFile, keyFile } of written) {
    const isServer = SERVERS.includes(name);
    const own = isServer ? join(folder, name) : join(folder, name, 'tls');
    const what = isServer ? 'server' : 'service';
    mkdirSync(own, { recursive: true, mode: 0o700 });
    // NATS and PostgreSQL run as other users. Their keys are readable only by the user of this script until an
    // administrator, or the compose service named `owners`, changes the owner.
    const mode = isServer ? 0o644 : 0o600;
    if (isServer) chmodSync(own, 0o755);
    replace(join(authority, 'ca.crt'), join(own, 'ca.crt'), mode);
    replace(keyFile, join(own, `${what}.key`), 0o600);
    replace(certFile, join(own, `${what}.crt`), mode);
  }
}

function replace(from: string, to: string, mode: number): void {
  const draft = join(dirname(to), '.new');
  copyFileSync(from, draft);
  chmodSync(draft, mode);
  renameSync(draft, to);
}
