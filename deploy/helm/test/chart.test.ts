import { CORE_SERVICES, SERVICE_NAMES, type ServiceName } from '@writ/identity';
import { beforeAll, describe, expect, it } from 'vitest';
import { requireDeployTool } from '../../../scripts/deploy-tools.ts';
import { deployment, EVERYTHING, helm, PORTS, WITH_PROXY } from './chart-fixture.ts';
import { type Manifest, manifestsOf, renderChart, validateManifests } from './render-chart.ts';

const kubernetesValidate = requireDeployTool('kubernetesValidate');

describe.skipIf(helm === undefined)('the chart', () => {
  let text = '';
  let manifests: Manifest[] = [];
  const all = (kind: string) => manifests.filter((manifest) => manifest.kind === kind);

  beforeAll(() => {
    text = renderChart(helm ?? '', EVERYTHING);
    manifests = manifestsOf(text);
  });

  it.skipIf(kubernetesValidate === undefined)(
    'renders valid Kubernetes manifests with all options and with defaults (SYS-5)',
    () => {
      validateManifests(kubernetesValidate ?? '', text);
      validateManifests(kubernetesValidate ?? '', renderChart(helm ?? ''));
      const broken = text.replace('readOnlyRootFilesystem', 'readOnlyRotFilesystem');
      expect(() => validateManifests(kubernetesValidate ?? '', broken)).toThrow();
    },
  );

  it('gives each service two replicas, a headless Service and a PodDisruptionBudget (SYS-5)', () => {
    for (const service of SERVICE_NAMES) {
      const named = (kind: string) =>
        all(kind).find(({ metadata }) => metadata.name === `writ-${service}`)?.spec;
      expect(named('Deployment').replicas).toBe(2);
      expect(named('Service').clusterIP).toBe('None');
      expect(named('Service').ports[0].port).toBe(PORTS[service]);
      expect(named('PodDisruptionBudget').maxUnavailable).toBe(1);
    }
  });

  it('mounts a writable volume for store markers, which can be a PersistentVolumeClaim (BD-4)', () => {
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

  it('has an autoscaler, an Ingress and a PodMonitor only if they are enabled (SYS-5)', () => {
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
    // The autoscaler sets the number of replicas; a value in the Deployment would overwrite it at each upgrade.
    expect(deployment(rendered, 'agent-worker').spec.replicas).toBeUndefined();
    expect(specOf('Ingress')?.rules[0]).toMatchObject({ host: 'writ.example.com' });
    expect(specOf('PodMonitor')?.podMetricsEndpoints).toMatchObject([{ honorLabels: true }]);
    expect(() => renderChart(helm ?? '', { ingress: { enabled: true } })).toThrow(/host/);
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
      const json = JSON.stringify([container.env, container.envFrom ?? [], volumes]);
      for (const other of others) expect(json).not.toMatch(new RegExp(`"writ-${other}(-tls)?"`));
      expect(json.includes('"writ-models"')).toBe(metadata.name === 'writ-execution-meter');
      expect(json.includes('"writ-tools"')).toBe(metadata.name === 'writ-tool-gateway');
    }
    expect(all('Secret')).toEqual([]);
  });
});
