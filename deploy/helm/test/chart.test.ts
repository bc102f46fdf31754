import { CORE_SERVICES, callerTable, SERVICE_NAMES, type ServiceName } from '@writ/identity';
import { beforeAll, describe, expect, it } from 'vitest';
import { requireDeployTool } from '../../../scripts/deploy-tools.ts';
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

const PORTS: Readonly<Record<ServiceName, number>> = {
  supervisor: 50_051,
  'spawn-budget': 50_052,
  'execution-meter': 50_053,
  'tool-gateway': 50_054,
  'agent-worker': 50_055,
  'agent-proxy': 50_056,
};
const EDGE = 8080;
/** The port of agent-proxy for external agents. */
const AGENTS = 8081;
/** Enables the optional service. */
const WITH_PROXY = { 'agent-proxy': { enabled: true } };
/** Values that enable every option. */
const EVERYTHING = {
  telemetry: { endpoint: 'http://collector:4317' },
  files: { agents: 'agents', models: 'models', tools: 'tools' },
  edge: { tlsSecret: 'edge' },
  env: { WRIT_SLOT_LEASE: '20s' },
  services: WITH_PROXY,
  agentProxy: { tlsSecret: 'agents' },
  database: { statementTimeout: '4s', poolSize: 8 },
  networkPolicy: { identityProvider: { to: [{ ipBlock: { cidr: '198.51.100.0/24' } }] } },
};

const SERVED_BY: Readonly<Record<string, readonly ServiceName[]>> = {
  supervision: ['supervisor'],
  review: ['supervisor'],
  spawn: ['spawn-budget'],
  meter: ['execution-meter'],
  model: ['execution-meter'],
  tool: ['tool-gateway'],
  worker: ['agent-worker', 'agent-proxy'],
};

/**
 * Required connections by the caller table: a service reaches the services that it may call, and those whose
 * signatures it verifies, to fetch their keys: its callers, and spawn-budget if it requires a slot grant.
 */
function neededReach(): Set<string> {
  const reach = new Set<string>();
  for (const [rpc, row] of callerTable) {
    if (!('services' in row) || rpc.includes('ToolProvider')) continue;
    for (const server of SERVED_BY[rpc.split('.')[1] ?? ''] ?? []) {
      for (const caller of row.services) {
        reach.add(`${caller} > ${server}`).add(`${server} > ${caller}`);
      }
      if (row.slotGrant !== undefined) reach.add(`${server} > spawn-budget`);
    }
  }
  return reach;
}

function deployment(rendered: readonly Manifest[], service: ServiceName): Manifest {
  const found = rendered.find(
    ({ kind, metadata }) => kind === 'Deployment' && metadata.name === `writ-${service}`,
  );
  if (found === undefined) throw new Error(`There is no Deployment of ${service}.`);
  return found;
}

describe.skipIf(helm === undefined)('the chart', () => {
  let text = '';
  let manifests: Manifest[] = [];
  let policies: Manifest[] = [];
  const all = (kind: string) => manifests.filter((manifest) => manifest.kind === kind);
  const pod = (service: ServiceName): Place => ({
    labels: all('Deployment').find(({ metadata }) => metadata.name === `writ-${service}`)?.spec
      .template.metadata.labels,
  });
  const isPublic = (service: ServiceName, port: number) =>
    (service === 'supervisor' && port === EDGE) || (service === 'agent-proxy' && port === AGENTS);
  const who = (to: Place, port: number) =>
    SERVICE_NAMES.filter((service) => canReach(policies, pod(service), to, port));

  beforeAll(() => {
    text = renderChart(helm ?? '', EVERYTHING);
    manifests = manifestsOf(text);
    policies = all('NetworkPolicy');
  });

  it.skipIf(kubernetesValidate === undefined)(
    'renders manifests that Kubernetes knows, with everything on and with nothing (SYS-5)',
    () => {
      validateManifests(kubernetesValidate ?? '', text);
      validateManifests(kubernetesValidate ?? '', renderChart(helm ?? ''));
      const broken = text.replace('readOnlyRootFilesystem', 'readOnlyRotFilesystem');
      expect(() => validateManifests(kubernetesValidate ?? '', broken)).toThrow();
    },
  );

  it('gives every service the limits on PostgreSQL that are set, and no others', () => {
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
      // Kubernetes expands only variables that are declared before.
      expect(names.indexOf('SECRET_DATABASE_URL')).toBeLessThan(names.indexOf(own));
      expect(Object.fromEntries(new URLSearchParams(parameters))).toEqual({
        sslmode: 'verify-full',
        sslrootcert: '/etc/writ/tls/ca.crt',
        sslcert: '/etc/writ/tls/tls.crt',
        sslkey: '/etc/writ/tls/tls.key',
      });
    }
    const plain = { nats: { url: 'nats://nats:4222' }, database: { parameters: '' } };
    const open = variables(manifestsOf(renderChart(helm ?? '', plain)), 'supervisor');
    expect(open.names.filter((name) => name.startsWith('WRIT_NATS_'))).toHaveLength(2);
    expect(open.of('WRIT_SUPERVISOR_DATABASE_URL')?.valueFrom).toBeDefined();
    const other = { env: { WRIT_NATS_CA_FILE: '/etc/nats-ca/ca.crt' } };
    const believing = variables(manifestsOf(renderChart(helm ?? '', other)), 'supervisor');
    expect(believing.of('WRIT_NATS_CA_FILE')?.value).toBe('/etc/nats-ca/ca.crt');
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

  it('rejects unknown values and names them', () => {
    expect(() => renderChart(helm ?? '', { replica: 3 })).toThrow(/replica/);
    expect(() => renderChart(helm ?? '', { services: { supervisor: { replicas: 0 } } })).toThrow(
      /replicas/,
    );
  });

  it('permits exactly the connections that the caller table and key requests need (SYS-6)', () => {
    const pairs = SERVICE_NAMES.flatMap((from) =>
      SERVICE_NAMES.filter((to) => to !== from).map((to) => ({ from, to })),
    );
    const reached = pairs
      .filter(({ from, to }) => canReach(policies, pod(from), pod(to), PORTS[to]))
      .map(({ from, to }) => `${from} > ${to}`);
    expect(reached.sort()).toEqual([...neededReach()].sort());
    expect(reached).toHaveLength(23);
    for (const { from, to } of pairs)
      for (const port of [22, EDGE, AGENTS, 5432])
        if (!isPublic(to, port))
          expect([from, to, port, canReach(policies, pod(from), pod(to), port)]).toEqual([
            from,
            to,
            port,
            false,
          ]);
  });

  it('permits model providers only for the meter, tools only for the gateway, and neither for the worker (SYS-6)', () => {
    const ways = { model: '198.18.0.1', tool: '198.18.0.2' };
    const own = { ipBlock: { cidr: `${ways.model}/32` } };
    const apart = renderChart(helm ?? '', {
      networkPolicy: {
        models: { to: [own], ports: [443] },
        tools: { to: [{ ipBlock: { cidr: `${ways.tool}/32` } }], ports: [443] },
      },
    });
    const whole = policies;
    policies = manifestsOf(apart).filter(({ kind }) => kind === 'NetworkPolicy');
    try {
      expect(who({ address: ways.model }, 443)).toEqual(['execution-meter']);
      expect(who({ address: ways.tool }, 443)).toEqual(['tool-gateway']);
      expect(who({ address: '203.0.113.1' }, 443)).toEqual([]);
    } finally {
      policies = whole;
    }
    // By default both reach public addresses, and no private ones.
    expect(who({ address: '203.0.113.1' }, 443)).toEqual(['execution-meter', 'tool-gateway']);
    for (const address of ['10.1.2.3', '169.254.169.254', '192.168.1.1', '172.20.0.1'])
      expect([address, who({ address }, 443)]).toEqual([address, []]);
    expect(who({ address: '203.0.113.1' }, 80)).toEqual([]);
    expect(who({ address: '198.51.100.7' }, 443)).toContain('supervisor');
  });

  it('permits unknown clients to reach the public port and no internal port', () => {
    const unknownClient = { labels: {}, namespace: { name: 'other' } };
    expect(canReach(policies, unknownClient, pod('supervisor'), EDGE)).toBe(true);
    expect(canReach(policies, unknownClient, pod('agent-proxy'), AGENTS)).toBe(true);
    for (const service of SERVICE_NAMES)
      for (const from of [
        unknownClient,
        { labels: { app: 'neighbour' } },
        { address: '203.0.113.1' },
      ])
        expect(canReach(policies, from, pod(service), PORTS[service])).toBe(false);
  });

  it('permits every service to reach its database, NATS and the collector', () => {
    const named = (name: string): Place => ({ labels: { 'app.kubernetes.io/name': name } });
    expect(who(named('postgresql'), 5432)).toEqual([...SERVICE_NAMES]);
    expect(who(named('nats'), 4222)).toEqual([...CORE_SERVICES]);
    expect(who(named('opentelemetry-collector'), 4317)).toEqual([...SERVICE_NAMES]);
  });

  it('has two replicas of each service behind a headless name, and keeps one through disruptions (SYS-5)', () => {
    for (const service of SERVICE_NAMES) {
      const named = (kind: string) =>
        all(kind).find(({ metadata }) => metadata.name === `writ-${service}`)?.spec;
      expect(named('Deployment').replicas).toBe(2);
      expect(named('Service').clusterIP).toBe('None');
      expect(named('Service').ports[0].port).toBe(PORTS[service]);
      expect(named('PodDisruptionBudget').maxUnavailable).toBe(1);
    }
  });

  it('gives every service a writable volume for the marker of its store, which can be a claim (BD-4)', () => {
    const mounted = (rendered: readonly Manifest[], service: ServiceName) => {
      const { containers, volumes } = deployment(rendered, service).spec.template.spec;
      const [{ env, volumeMounts }] = containers;
      const dir = env.find(({ name }: { name: string }) => name === 'WRIT_STORE_MARKER_DIR')?.value;
      const mount = volumeMounts.find(({ mountPath }: { mountPath: string }) => mountPath === dir);
      expect(mount.readOnly).toBeUndefined();
      return volumes.find(({ name }: { name: string }) => name === mount.name);
    };
    const volume = { persistentVolumeClaim: { claimName: 'markers' } };
    const claimed = manifestsOf(
      renderChart(helm ?? '', { storeMarkers: { volume }, services: WITH_PROXY }),
    );
    for (const service of SERVICE_NAMES) {
      expect(mounted(manifests, service)).toEqual({ name: 'markers', emptyDir: {} });
      expect(mounted(claimed, service)).toEqual({ name: 'markers', ...volume });
    }
  });

  it('has an autoscaler, an Ingress and a PodMonitor only where they are enabled (SYS-5)', () => {
    const kinds = ['HorizontalPodAutoscaler', 'Ingress', 'PodMonitor'];
    for (const kind of kinds) expect(all(kind)).toEqual([]);
    const values = {
      services: { 'agent-worker': { autoscaling: { enabled: true, maxReplicas: 9 } } },
      ingress: { enabled: true, host: 'writ.example.com', tlsSecret: 'edge' },
      podMonitor: { enabled: true },
    };
    const rendered = manifestsOf(renderChart(helm ?? '', values));
    const specOf = (kind: string) => rendered.find((manifest) => manifest.kind === kind)?.spec;
    expect(specOf('HorizontalPodAutoscaler')).toMatchObject({
      scaleTargetRef: { name: 'writ-agent-worker' },
      minReplicas: 2,
      maxReplicas: 9,
    });
    // The autoscaler decides; a number of replicas in the Deployment would undo it at each upgrade.
    expect(deployment(rendered, 'agent-worker').spec.replicas).toBeUndefined();
    expect(specOf('Ingress')?.rules[0]).toMatchObject({ host: 'writ.example.com' });
    expect(specOf('PodMonitor')?.podMetricsEndpoints).toMatchObject([{ honorLabels: true }]);
    expect(() => renderChart(helm ?? '', { ingress: { enabled: true } })).toThrow(/host/);
  });

  it('runs agent-proxy only where it is enabled, and the other services in any case (AP-1)', () => {
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

  it('lets pods of external agents reach agent-proxy, and nothing else (AP-1, SYS-6)', () => {
    const agent: Place = { labels: { 'writ-agent': 'external' } };
    const ports = [22, 80, 443, EDGE, AGENTS, 4222, 5432, ...Object.values(PORTS)];
    const reached = SERVICE_NAMES.flatMap((service) =>
      ports
        .filter((port) => canReach(policies, agent, pod(service), port))
        .map((port) => `${service}:${port}`),
    );
    expect(reached).toEqual([`agent-proxy:${AGENTS}`]);
    for (const other of [
      { address: '203.0.113.1' },
      { labels: { 'app.kubernetes.io/name': 'postgresql' } },
      agent,
    ])
      for (const port of ports) expect(canReach(policies, agent, other, port)).toBe(false);
    // No service reaches an agent: it only calls.
    expect(who(agent, 443)).toEqual([]);
    const clients = [{ podSelector: { matchLabels: agent.labels } }];
    const whole = policies;
    policies = manifestsOf(
      renderChart(helm ?? '', { services: WITH_PROXY, networkPolicy: { agents: clients } }),
    ).filter(({ kind }) => kind === 'NetworkPolicy');
    try {
      expect(canReach(policies, agent, pod('agent-proxy'), AGENTS)).toBe(true);
      const other: Place = { labels: {}, namespace: { name: 'other' } };
      expect(canReach(policies, other, pod('agent-proxy'), AGENTS)).toBe(false);
    } finally {
      policies = whole;
    }
  });

  it('has no disruption budget for a single replica', () => {
    const one = { 'tool-gateway': { replicas: 1 } };
    const budgets = manifestsOf(renderChart(helm ?? '', { services: one }))
      .filter(({ kind }) => kind === 'PodDisruptionBudget')
      .map(({ metadata }) => metadata.name);
    expect(budgets).toHaveLength(CORE_SERVICES.length - 1);
    expect(budgets).not.toContain('writ-tool-gateway');
  });

  it('serves the public port until load balancers have removed a terminating replica, within the grace period', () => {
    for (const service of SERVICE_NAMES) {
      const { spec } = deployment(manifests, service).spec.template;
      const [{ lifecycle }] = spec.containers;
      const isEdge = service === 'supervisor' || service === 'agent-proxy';
      expect(spec.terminationGracePeriodSeconds).toBe(isEdge ? 35 : 30);
      expect(lifecycle?.preStop.exec.command).toEqual(
        isEdge ? ['/usr/local/bin/node', '-e', 'setTimeout(() => {}, 5000)'] : undefined,
      );
    }
  });

  it('spreads replicas over machines and zones, and applies volumes, scheduling and annotations', () => {
    const own = {
      affinity: { nodeAffinity: {} },
      priorityClassName: 'high',
      podAnnotations: { 'example.org/restart': 'true' },
      volumes: [{ name: 'nats-ca', configMap: { name: 'nats-ca' } }],
      volumeMounts: [{ name: 'nats-ca', mountPath: '/etc/nats-ca' }],
    };
    const values = {
      services: { 'execution-meter': own },
      edge: { annotations: { 'example.org/lb': 'internal' } },
    };
    const text = renderChart(helm ?? '', values);
    if (kubernetesValidate !== undefined) validateManifests(kubernetesValidate, text);
    const rendered = manifestsOf(text);
    const { template } = deployment(rendered, 'execution-meter').spec;
    expect(template.metadata.annotations).toEqual(own.podAnnotations);
    const { affinity, priorityClassName, volumes, containers, topologySpreadConstraints } =
      template.spec;
    expect({ affinity, priorityClassName }).toEqual({
      affinity: own.affinity,
      priorityClassName: own.priorityClassName,
    });
    expect(volumes).toContainEqual(own.volumes[0]);
    expect(containers[0].volumeMounts).toContainEqual(own.volumeMounts[0]);
    const keys = topologySpreadConstraints.map(
      ({ topologyKey }: { topologyKey: string }) => topologyKey,
    );
    expect(keys).toEqual(['kubernetes.io/hostname', 'topology.kubernetes.io/zone']);
    const edge = rendered.find(
      ({ kind, metadata }) => kind === 'Service' && metadata.name === 'writ',
    );
    expect(edge?.metadata).toMatchObject({ annotations: values.edge.annotations });
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

  it('removes all unneeded privileges from every container, and gives each only its own secrets (SYS-6)', () => {
    for (const { metadata, spec } of all('Deployment')) {
      const { securityContext, containers, automountServiceAccountToken, volumes } =
        spec.template.spec;
      const [container] = containers;
      expect(securityContext).toMatchObject({ runAsNonRoot: true, runAsUser: 65_532 });
      expect(container.securityContext).toEqual({
        allowPrivilegeEscalation: false,
        readOnlyRootFilesystem: true,
        capabilities: { drop: ['ALL'] },
      });
      expect(automountServiceAccountToken).toBe(false);
      expect(container.resources.limits.memory).toBeTruthy();
      for (const probe of ['startupProbe', 'readinessProbe'])
        expect(container[probe].exec.command).toContain(metadata.name.slice('writ-'.length));
      const others = SERVICE_NAMES.filter((service) => metadata.name !== `writ-${service}`);
      const notes = JSON.stringify([container.env, container.envFrom ?? [], volumes]);
      for (const other of others) expect(notes).not.toMatch(new RegExp(`"writ-${other}(-tls)?"`));
      expect(notes.includes('"writ-models"')).toBe(metadata.name === 'writ-execution-meter');
      expect(notes.includes('"writ-tools"')).toBe(metadata.name === 'writ-tool-gateway');
    }
    expect(all('Secret')).toEqual([]);
  });
});
