import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { type CertificateFolderOptions, issueInFolder, makeFolder } from '@writ/certs';
import { SERVICE_NAMES, type ServerName, TOOL_PROVIDER } from '@writ/identity';

/** Whoever shows a certificate but is no service. */
type Other = (typeof OTHERS)[number];

/** Certificates of every service and server of a platform, as `writ certs` makes them. */
export interface TestCertificates {
  readonly trustDomain: string;
  readonly caFile: string;
  /** The authority, in PEM. */
  readonly ca: string;
  certFile(name: ServerName | Other): string;
  keyFile(name: ServerName | Other): string;
  /** Settings of a service that calls the others over mutual TLS. */
  env(service: ServerName): Record<string, string>;
  /** Issues new ones in place of the old; they are good for an hour unless said otherwise. */
  renew(lifeMs?: number): Promise<void>;
}

const OTHERS = ['edge', 'nats', 'postgres'] as const;
const HOUR_MS = 3_600_000;

/** Makes an authority and certificates in a new folder, for servers on 127.0.0.1. */
export async function generateTestCertificates(dir: string): Promise<TestCertificates> {
  const trustDomain = 'test.local';
  const options: CertificateFolderOptions = {
    dir,
    trustDomain,
    services: [...SERVICE_NAMES, TOOL_PROVIDER],
    others: OTHERS,
    addresses: ['127.0.0.1'],
    lifeMs: HOUR_MS,
  };
  await makeFolder(options, HOUR_MS);
  const caFile = join(dir, 'ca.crt');
  const certFile = (name: string): string => join(dir, `${name}.crt`);
  const keyFile = (name: string): string => join(dir, `${name}.key`);
  return {
    trustDomain,
    caFile,
    ca: readFileSync(caFile, 'utf8'),
    certFile,
    keyFile,
    env: (service) => ({
      WRIT_TLS_CERT_FILE: certFile(service),
      WRIT_TLS_KEY_FILE: keyFile(service),
      WRIT_TLS_CA_FILE: caFile,
    }),
    async renew(lifeMs = HOUR_MS) {
      await issueInFolder({ ...options, lifeMs });
    },
  };
}
