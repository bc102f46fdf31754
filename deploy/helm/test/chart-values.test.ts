import { CORE_SERVICES, SERVICE_NAMES, type ServiceName } from '@writ/identity';
import { beforeAll, describe, expect, it } from 'vitest';
import { EVERYTHING, helm, WITH_PROXY } from './chart-fixture.ts';
import { type Manifest, manifestsOf, notesOf, renderChart } from './render-chart.ts';

describe.skipIf(helm === undefined)('a configured chart', () => {
  let manifests: Manifest[] = [];
  const all = (kind: string) => manifests.filter((manifest) => manifest.kind === kind);

  beforeAll(() => {
    manifests = manifestsOf(renderChart(helm ?? '', EVERYTHING));
  });

  it('passes the configured PostgreSQL pool size and timeouts to every service, and rejects invalid ones', () => {
    for (const { spec } of all('Deployment')) {
      const { env } = spec.template.spec.containers[0] as {
        env: { name: string; value: string }[];
      };
      expect(env.filter(({ name }) => name.startsWith('WRIT_DATABASE_'))).toEqual([
        { name: 'WRIT_DATABASE_POOL_SIZE', value: '8' },
        { name: 'WRIT_DATABASE_STATEMENT_TIMEOUT', value: '4s' },
      ]);
    }
    for (const database of [{ lockTimeout: '4' }, { poolSize: 33 }, { poolsize: 3 }])
      expect(() => renderChart(helm ?? '', { database })).toThrow(/database/);
  });

  it('configures the certificate of every service for NATS and PostgreSQL by default (SYS-4)', () => {
    const variables = (rendered: readonly Manifest[], service: ServiceName) => {
      const { spec } = rendered.find(
        ({ kind, metadata }) => kind === 'Deployment' && metadata.name === `writ-${service}`,
      ) as Manifest;
      const { env } = spec.template.spec.containers[0] as {
        env: { name: string; value?: string; valueFrom?: object }[];
      };
      const names = env.map(({ name }) => name);
      expect(names).toEqual([...new Set(names)]);
      return { names, of: (name: string) => env.find((each) => each.name === name) };
    };
    const files = { CA_FILE: 'ca.crt', CERT_FILE: 'tls.crt', KEY_FILE: 'tls.key' };
    const noBus = variables(manifests, 'agent-proxy').names;
    expect(noBus.filter((name) => name.startsWith('WRIT_NATS_'))).toEqual([]);
    for (const service of CORE_SERVICES) {
      const own = `WRIT_${service.toUpperCase().replaceAll('-', '_')}_DATABASE_URL`;
      const { names, of: variable } = variables(manifests, service);
      expect(variable('WRIT_NATS_URL')?.value).toBe('tls://nats:4222');
      for (const [name, file] of Object.entries(files))
        expect(variable(`WRIT_NATS_${name}`)?.value).toBe(`/etc/writ/tls/${file}`);
      const [secret = '', parameters] = variable(own)?.value?.split('?') ?? [];
      expect(names).toContain(/^\$\((\w+)\)$/.exec(secret)?.[1]);
      // Kubernetes expands only variables that are declared earlier in the list.
      expect(names.indexOf('SECRET_DATABASE_URL')).toBeLessThan(names.indexOf(own));
      expect(Object.fromEntries(new URLSearchParams(parameters))).toEqual({
        sslmode: 'verify-full',
        sslrootcert: '/etc/writ/tls/ca.crt',
        sslcert: '/etc/writ/tls/tls.crt',
        sslkey: '/etc/writ/tls/tls.key',
      });
    }
    const plain = { nats: { url: 'nats://nats:4222' }, database: { parameters: '' } };
    const withoutTls = variables(manifestsOf(renderChart(helm ?? '', plain)), 'supervisor');
    expect(withoutTls.names.filter((name) => name.startsWith('WRIT_NATS_'))).toHaveLength(2);
    expect(withoutTls.of('WRIT_SUPERVISOR_DATABASE_URL')?.valueFrom).toBeDefined();
    const other = { env: { WRIT_NATS_CA_FILE: '/etc/nats-ca/ca.crt' } };
    const withOtherCa = variables(manifestsOf(renderChart(helm ?? '', other)), 'supervisor');
    expect(withOtherCa.of('WRIT_NATS_CA_FILE')?.value).toBe('/etc/nats-ca/ca.crt');
  });

  it('runs the image with the digest, if one is set, and with the tag otherwise (SYS-5)', () => {
    const imagesWith = (image: object) => {
      const rendered = manifestsOf(renderChart(helm ?? '', { image, services: WITH_PROXY }));
      const images = rendered
        .filter(({ kind }) => kind === 'Deployment')
        .map(({ spec }) => spec.template.spec.containers[0].image);
      expect(images).toHaveLength(SERVICE_NAMES.length);
      return [...new Set(images)];
    };
    const repository = 'registry.example.com/writ';
    const digest = `sha256:${'0123456789abcdef'.repeat(4)}`;
    expect(imagesWith({ repository })).toEqual([`${repository}:0.1.0`]);
    expect(imagesWith({ repository, tag: '0.1.1' })).toEqual([`${repository}:0.1.1`]);
    expect(imagesWith({ repository, tag: '0.1.1', digest })).toEqual([`${repository}@${digest}`]);
    expect(() => imagesWith({ repository, digest: 'sha256:short' })).toThrow(/digest/);
  });

  it('runs agent-proxy only if it is enabled, and always runs the other services (AP-1)', () => {
    const without = renderChart(helm ?? '');
    expect(without).not.toContain('agent-proxy');
    expect(without).not.toContain('AGENT_PROXY');
    expect(() => renderChart(helm ?? '', { services: { supervisor: { enabled: false } } })).toThrow(
      /enabled/,
    );
    const proxy = manifests.filter(({ metadata }) => metadata.name.startsWith('writ-agent-proxy'));
    const worker = manifests.filter(({ metadata }) => metadata.name === 'writ-agent-worker');
    expect(proxy.map(({ kind }) => kind).sort()).toEqual(worker.map(({ kind }) => kind).sort());
  });

  it('gives run tokens an address at which agent-proxy accepts requests (AP-1)', () => {
    const urlWith = (agentProxy: object) => {
      const rendered = manifestsOf(
        renderChart(helm ?? '', { services: WITH_PROXY, agentProxy }, 'mine'),
      );
      const settingOf = (service: ServiceName, variable: string): string => {
        const { spec } = rendered.find(
          ({ kind, metadata }) => kind === 'Deployment' && metadata.name === `mine-${service}`,
        ) as Manifest;
        const { env } = spec.template.spec.containers[0] as {
          env: { name: string; value: string }[];
        };
        return env.find(({ name }) => name === variable)?.value ?? '';
      };
      const url = settingOf('supervisor', 'WRIT_AGENT_PROXY_URL');
      const hosts = settingOf('agent-proxy', 'WRIT_AGENT_PROXY_HOSTS').split(',');
      expect(hosts).toContain(new URL(url).hostname);
      expect(hosts).toContain('mine-agents.default.svc');
      expect(settingOf('agent-proxy', 'WRIT_AGENT_PROXY_ENDPOINT_HOST')).toBe('0.0.0.0');
      const service = rendered.find(
        ({ kind, metadata }) => kind === 'Service' && metadata.name === 'mine-agents',
      );
      expect(service?.spec.selector['app.kubernetes.io/component']).toBe('agent-proxy');
      const ingress = rendered.find(({ kind }) => kind === 'Ingress')?.spec;
      const { name } = ingress?.rules[0].http.paths[0].backend.service ?? {};
      expect(name).toBe(ingress === undefined ? undefined : 'mine-agents');
      return url;
    };
    expect(urlWith({})).toBe('http://mine-agents:8081/v1');
    expect(urlWith({ tlsSecret: 'agents' })).toBe('https://mine-agents:8081/v1');
    const host = 'models.example.com';
    expect(urlWith({ ingress: { enabled: true, host } })).toBe(`https://${host}/v1`);
    expect(urlWith({ url: 'http://10.1.2.3/v1' })).toBe('http://10.1.2.3/v1');
  });

  it('rejects unknown values and names them', () => {
    expect(() => renderChart(helm ?? '', { replica: 3 })).toThrow(/replica/);
    expect(() => renderChart(helm ?? '', { services: { supervisor: { replicas: 0 } } })).toThrow(
      /replicas/,
    );
  });

  it('rejects names that are too long for Kubernetes', () => {
    const long = 'w'.repeat(48);
    expect(() => renderChart(helm ?? '', {}, long)).toThrow(/may have 47 characters/);
    const names = manifestsOf(renderChart(helm ?? '', {}, long.slice(1)));
    for (const { metadata } of names) expect(metadata.name.length).toBeLessThanOrEqual(63);
  });

  it('prints required Secrets and risky values after the installation', () => {
    const good = notesOf(helm ?? '', { edge: { tlsSecret: 'edge' } });
    expect(good).toContain('writ-execution-meter, writ-execution-meter-tls');
    expect(good).toContain('port-forward service/writ 8080:8080');
    expect(good).not.toContain('WARNING');
    const risky = notesOf(helm ?? '', {
      edge: { type: 'LoadBalancer' },
      networkPolicy: { enabled: false },
      services: { supervisor: { replicas: 1 } },
    });
    expect(risky.match(/WARNING: .*/g)).toEqual([
      expect.stringContaining('in cleartext'),
      expect.stringContaining('without network policies'),
      expect.stringContaining('supervisor has one replica'),
    ]);
  });
});
