/**
 * `node deploy/helm/trial-secrets.ts [RELEASE] | kubectl create -f -`: writes the Secrets of a release that runs its
 * own PostgreSQL and NATS, with new keys, certificates and passwords. Prints an API key to stderr.
 */
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { API_KEYS_FILE, openApiKeys, SERVICE_NAMES, type ServiceName } from '@writ/identity';
import { newPassword } from '../../scripts/compose-env.ts';
import { prepare } from '../docker/credentials.ts';

const PREFIX = 'writ-';
/** Servers of the release besides the services. */
const SERVERS = ['nats', 'postgres'] as const;

/** A Secret in the form of the API of Kubernetes. */
interface Secret {
  readonly apiVersion: 'v1';
  readonly kind: 'Secret';
  readonly metadata: {
    readonly name: string;
    readonly labels: Readonly<Record<string, string>>;
  };
  readonly stringData: Readonly<Record<string, string>>;
}

/** Name without its prefix, and content of a Secret. */
type Content = readonly [name: string, stringData: Secret['stringData']];

/** Secrets of a trial, and an API key that its supervisor accepts. */
interface TrialSecrets {
  readonly list: {
    readonly apiVersion: 'v1';
    readonly kind: 'List';
    readonly items: readonly Secret[];
  };
  readonly apiKey: string;
}

/**
 * Generates the Secrets of a trial. The certificates are valid for 90 days; the private key of their CA is not kept.
 */
export async function trialSecrets(release = 'writ'): Promise<TrialSecrets> {
  const folder = mkdtempSync(join(tmpdir(), 'writ-trial-'));
  try {
    await prepare(
      folder,
      SERVERS.map((server) => `${release}-${server}`),
    );
    const apiKeys = openApiKeys({ file: join(folder, 'supervisor', API_KEYS_FILE) });
    const apiKey = await apiKeys.create({
      tenant: 'default',
      subject: 'me',
      roles: ['caller', 'approver'],
    });
    const contents: readonly Content[] = [
      ...SERVICE_NAMES.flatMap((service) => secretsOfService(folder, service)),
      ['postgres', { password: newPassword() }],
      ['nats', { 'observer-password': newPassword() }],
      ...SERVERS.map((server) => certificate(server, join(folder, server, 'server'))),
    ];
    const labels = { 'app.kubernetes.io/instance': release };
    const items = contents.map(
      ([name, stringData]): Secret => ({
        apiVersion: 'v1',
        kind: 'Secret',
        metadata: { name: `${PREFIX}${name}`, labels },
        stringData,
      }),
    );
    return { list: { apiVersion: 'v1', kind: 'List', items }, apiKey };
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

function secretsOfService(folder: string, service: ServiceName): readonly Content[] {
  const read = (...path: string[]) => readFileSync(join(folder, service, ...path), 'utf8');
  return [
    [
      service,
      {
        'database-password': newPassword(),
        'signing-keys': read('keys', `${service}.jwks.json`),
        // agent-proxy publishes no events.
        ...(service !== 'agent-proxy' && { 'nats-password': newPassword() }),
        ...(service === 'supervisor' && { 'api-keys': read(API_KEYS_FILE) }),
      },
    ],
    certificate(service, join(folder, service, 'tls/service')),
  ];
}

function certificate(name: string, path: string): Content {
  return [
    `${name}-tls`,
    {
      'tls.crt': readFileSync(`${path}.crt`, 'utf8'),
      'tls.key': readFileSync(`${path}.key`, 'utf8'),
      'ca.crt': readFileSync(join(path, '../ca.crt'), 'utf8'),
    },
  ];
}

if (import.meta.main) {
  const { list, apiKey } = await trialSecrets(process.argv[2]);
  console.log(JSON.stringify(list));
  console.error(`Store the API key now; it is not shown again: ${apiKey}`);
}
