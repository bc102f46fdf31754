import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { type CertificateFolderOptions, createFolder, issueInFolder } from '@writ/certs';
import { SERVICE_NAMES, type ServerName, TOOL_PROVIDER } from '@writ/identity';

/** A certificate holder that is not a service. */
type Other = (typeof OTHERS)[number];

/** Certificates of every service and server of a platform, as `writ certs` issues them. */
export interface TestCertificates {
  readonly trustDomain: string;
  readonly caFile: string;
  /** The CA certificate in PEM. */
  readonly ca: string;
  certFile(name: ServerName | Other): string;
  keyFile(name: ServerName | Other): string;
  /** Environment of a service that uses mutual TLS with the other services. */
  env(service: ServerName): Record<string, string>;
  /** Replaces all certificates; the new ones are valid for `lifeMs`, by default one hour. */
  renew(lifeMs?: number): Promise<void>;
}

const OTHERS = ['edge', 'nats', 'postgres'] as const;
const HOUR_MS = 3_600_000;

/** Creates a CA and issues certificates for servers on 127.0.0.1 into `dir`. */
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
  await createFolder(options, HOUR_MS);
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
