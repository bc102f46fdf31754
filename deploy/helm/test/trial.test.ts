import { X509Certificate } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { CORE_SERVICES, SERVICE_NAMES, type ServiceName } from '@writ/identity';
import { beforeAll, describe, expect, it } from 'vitest';
import { requireDeployTool } from '../../../scripts/deploy-tools.ts';
import { trialSecrets } from '../trial-secrets.ts';
import { canReach, type Place } from './reach.ts';
import {
  type Manifest,
  manifestsOf,
  notesOf,
  renderChart,
  validateManifests,
} from './render-chart.ts';

const helm = requireDeployTool('helm');
const kubernetesValidate = requireDeployTool('kubernetesValidate');

const DEPLOY = resolve(import.meta.dirname, '../..');
const TRIAL = {
  trial: { postgresql: { enabled: true }, nats: { enabled: true } },
  services: { 'agent-proxy': { enabled: true } },
};
const PORTS = { postgres: 5432, nats: 4222 } as const;
const SERVERS = ['postgres', 'nats'] as const;

interface Variable {
  readonly name: string;
  readonly value?: string;
  readonly valueFrom?: { readonly secretKeyRef: SecretKey };
}

interface SecretKey {
  readonly name: string;
  readonly key: string;
}

describe.skipIf(helm === undefined)('the trial servers of the chart', () => {
  let text = '';
  let manifests: Manifest[] = [];
  const find = (kind: string, name: string): Manifest => {
    const found = manifests.find((each) => each.kind === kind && each.metadata.name === name);
    if (found === undefined) throw new Error(`There is no ${kind} ${name}.`);
    return found;
  };
  const podOf = ({ spec }: Manifest) => spec.template.spec;
  const variablesOf = (manifest: Manifest): readonly Variable[] =>
    podOf(manifest).containers[0].env;
  const service = (name: ServiceName) => find('Deployment', `writ-${name}`);
  const server = (name: (typeof SERVERS)[number]) => find('StatefulSet', `writ-${name}`);

  beforeAll(() => {
    text = renderChart(helm ?? '', TRIAL);
    manifests = manifestsOf(text);
  });

  it('are not rendered by default, and can be enabled one by one (SYS-5)', () => {
    const kinds = (values: object) =>
      manifestsOf(renderChart(helm ?? '', values))
        .filter(({ kind }) => kind === 'StatefulSet' || kind === 'ConfigMap')
        .map(({ kind, metadata }) => `${kind} ${metadata.name}`)
        .sort();
    expect(kinds({})).toEqual([]);
    expect(kinds({ trial: { nats: { enabled: true } } })).toEqual([
      'ConfigMap writ-nats',
      'StatefulSet writ-nats',
    ]);
    expect(kinds({ trial: { postgresql: { enabled: true } } })).toEqual([
      'ConfigMap writ-postgres',
      'StatefulSet writ-postgres',
    ]);
    expect(() => kinds({ trial: { redis: { enabled: true } } })).toThrow(/redis/);
    expect(() => kinds({ trial: { nats: { replicas: 3 } } })).toThrow(/replicas/);
  });

  it.skipIf(kubernetesValidate === undefined)('are valid Kubernetes manifests (SYS-5)', () => {
    validateManifests(kubernetesValidate ?? '', text);
    const values = { trial: { nats: { enabled: true, storageClassName: 'fast', storage: '1Gi' } } };
    const other = renderChart(helm ?? '', values);
    validateManifests(kubernetesValidate ?? '', other);
    expect(other).toContain('storageClassName: fast');
  });

  it('have the same roles, users and settings as the compose deployment (SYS-6)', () => {
    const files = { postgres: ['roles.sql', 'pg_hba.conf'], nats: ['nats-server.conf'] };
    files.nats.push('nats-server-tls.conf', 'users.conf');
    for (const name of SERVERS) {
      const { data } = find('ConfigMap', `writ-${name}`) as unknown as { data: object };
      const expected = files[name].map((file) => [
        file,
        readFileSync(join(DEPLOY, name, file), 'utf8'),
      ]);
      expect(data).toEqual(Object.fromEntries(expected));
    }
    expect(podOf(server('postgres')).containers[0].args).toContain(
      '--hba_file=/etc/postgresql/pg_hba.conf',
    );
    const mounted = podOf(server('postgres')).containers[0].volumeMounts;
    expect(mounted).toContainEqual(
      expect.objectContaining({ mountPath: '/docker-entrypoint-initdb.d/roles.sql' }),
    );
  });

  it('are the servers that every service connects to, with TLS and its own role (SYS-5, SYS-6)', () => {
    for (const name of SERVICE_NAMES) {
      const variables = variablesOf(service(name));
      const own = `WRIT_${name.toUpperCase().replaceAll('-', '_')}_DATABASE_URL`;
      const role = `writ_${name.replaceAll('-', '_')}`;
      const names = variables.map((each) => each.name);
      const { value = '' } = variables.find((each) => each.name === own) ?? {};
      const [, variable = ''] = /\$\((\w+)\)/.exec(value) ?? [];
      // Kubernetes expands only variables that are declared earlier in the list.
      expect(names.indexOf(variable)).toBeGreaterThan(-1);
      expect(names.indexOf(variable)).toBeLessThan(names.indexOf(own));
      const url = new URL(value.replace(`$(${variable})`, 'secret'));
      expect([url.username, url.password, url.host, url.pathname]).toEqual([
        role,
        'secret',
        'writ-postgres:5432',
        `/${role}`,
      ]);
      expect(url.searchParams.get('sslmode')).toBe('verify-full');
      const bus = variables.find((each) => each.name === 'WRIT_NATS_URL')?.value;
      expect(bus).toBe(name === 'agent-proxy' ? undefined : 'tls://writ-nats:4222');
      expect(names.includes('WRIT_NATS_CA_FILE')).toBe(name !== 'agent-proxy');
    }
    const parameters = { ...TRIAL, database: { parameters: '' } };
    expect(() => renderChart(helm ?? '', parameters)).toThrow(/database.parameters/);
  });

  it('and the services use exactly the Secrets that trial-secrets.ts creates (SYS-6)', async () => {
    const { list, apiKey } = await trialSecrets('writ');
    const written = list.items.flatMap(({ metadata, stringData }) =>
      Object.keys(stringData).map((key) => `${metadata.name} ${key}`),
    );
    const workloads = [...SERVICE_NAMES.map(service), ...SERVERS.map(server)];
    expect([...new Set(workloads.flatMap(secretKeysOf))].sort()).toEqual(written.sort());

    for (const { metadata } of list.items)
      expect(metadata.labels).toEqual({ 'app.kubernetes.io/instance': 'writ' });
    const passwords = list.items.flatMap(({ stringData }) =>
      Object.entries(stringData).filter(([key]) => key.endsWith('password')),
    );
    expect(new Set(passwords.map(([, value]) => value)).size).toBe(passwords.length);
    for (const [, value] of passwords) expect(value).toMatch(/^[a-z][a-z0-9]{20,}$/);
    expect(apiKey).toMatch(/^writ_/);
    expect(JSON.stringify(list)).not.toContain(apiKey);

    const dataOf = (name: string) =>
      list.items.find(({ metadata }) => metadata.name === name)?.stringData ?? {};
    for (const name of SERVERS) {
      const certificate = new X509Certificate(dataOf(`writ-${name}-tls`)['tls.crt'] ?? '');
      expect(certificate.checkHost(`writ-${name}`)).toBe(`writ-${name}`);
      const { 'ca.crt': authority = '' } = dataOf('writ-supervisor-tls');
      expect(certificate.verify(new X509Certificate(authority).publicKey)).toBe(true);
    }
  });

  it('have the same security context as the services, and store their data in a volume (SYS-6)', () => {
    const [container] = podOf(service('supervisor')).containers;
    for (const name of SERVERS) {
      const { securityContext, containers, automountServiceAccountToken, enableServiceLinks } =
        podOf(server(name));
      expect(containers).toHaveLength(1);
      expect(containers[0].securityContext).toEqual(container.securityContext);
      expect(securityContext).toMatchObject({
        runAsNonRoot: true,
        seccompProfile: { type: 'RuntimeDefault' },
      });
      expect(securityContext.runAsUser).toBeGreaterThan(0);
      expect(securityContext.fsGroup).toBe(securityContext.runAsGroup);
      expect([automountServiceAccountToken, enableServiceLinks]).toEqual([false, false]);
      expect(containers[0].resources.limits.memory).toBeTruthy();
      for (const probe of ['startupProbe', 'readinessProbe', 'livenessProbe'])
        expect(containers[0][probe].exec.command.length).toBeGreaterThan(0);
      const { spec } = server(name);
      expect(spec.replicas).toBe(1);
      expect(spec.serviceName).toBe(find('Service', `writ-${name}`).metadata.name);
      const [claim] = spec.volumeClaimTemplates;
      const mounts = containers[0].volumeMounts.map((mount: { name: string }) => mount.name);
      expect(mounts).toContain(claim.metadata.name);
    }
  });

  it('accept connections only from the services that use them, and open no connections (SYS-6)', () => {
    const policies = manifests.filter(({ kind }) => kind === 'NetworkPolicy');
    const placeOf = ({ spec }: Manifest): Place => ({ labels: spec.template.metadata.labels });
    const using = { postgres: SERVICE_NAMES, nats: CORE_SERVICES };
    for (const name of SERVERS) {
      const place = placeOf(server(name));
      const reaching = SERVICE_NAMES.filter((each) =>
        canReach(policies, placeOf(service(each)), place, PORTS[name]),
      );
      expect(reaching).toEqual([...using[name]]);
      const others: readonly Place[] = [
        { labels: {} },
        { labels: { 'writ-agent': 'external' } },
        { labels: {}, namespace: { name: 'other' } },
        ...SERVERS.filter((other) => other !== name).map((other) => placeOf(server(other))),
      ];
      for (const other of others) {
        expect(canReach(policies, other, place, PORTS[name])).toBe(false);
        expect(canReach(policies, place, other, 443)).toBe(false);
      }
      expect(canReach(policies, placeOf(service('supervisor')), place, 22)).toBe(false);
      expect(canReach(policies, place, { address: '203.0.113.1' }, 443)).toBe(false);
    }
    const open = manifestsOf(
      renderChart(helm ?? '', { ...TRIAL, networkPolicy: { enabled: false } }),
    );
    expect(open.filter(({ kind }) => kind === 'NetworkPolicy')).toEqual([]);
  });

  it('are named in the notes, with a warning against use in production (SYS-5)', () => {
    const trial = notesOf(helm ?? '', { ...TRIAL, edge: { tlsSecret: 'edge' } });
    expect(trial).toContain('writ-postgres, writ-postgres-tls');
    expect(trial).toContain('writ-nats, writ-nats-tls');
    expect(trial).toMatch(/WARNING: .*for trials, not for production/);
    expect(notesOf(helm ?? '', {})).not.toContain('trial');
  });

  it('reject a release whose name is too long for the labels of their pods (SYS-5)', () => {
    const long = 'w'.repeat(44);
    expect(() => renderChart(helm ?? '', TRIAL, long)).toThrow(/may have 43 characters/);
    expect(renderChart(helm ?? '', TRIAL, long.slice(1))).toContain('StatefulSet');
  });
});

/** Returns the required and optional Secret keys of a workload, as `<Secret> <key>`. */
function secretKeysOf({ spec }: Manifest): string[] {
  const { containers, volumes } = spec.template.spec;
  const variables: readonly Variable[] = containers[0].env;
  const references = variables.flatMap(({ valueFrom }) =>
    valueFrom === undefined ? [] : [valueFrom.secretKeyRef],
  );
  const fromVolumes = (
    volumes as readonly {
      readonly secret?: { readonly secretName: string; readonly items?: readonly SecretKey[] };
      readonly projected?: {
        readonly sources: readonly { secret: { name: string; items: readonly SecretKey[] } }[];
      };
    }[]
  ).flatMap(({ secret, projected }) => {
    const whole = ['tls.crt', 'tls.key', 'ca.crt'];
    const ofSecret = secret === undefined ? [] : (secret.items?.map(({ key }) => key) ?? whole);
    return [
      ...ofSecret.map((key) => ({ name: secret?.secretName ?? '', key })),
      ...(projected?.sources ?? []).flatMap((source) =>
        source.secret.items.map(({ key }) => ({ name: source.secret.name, key })),
      ),
    ];
  });
  return [...references, ...fromVolumes].map(({ name, key }) => `${name} ${key}`);
}
