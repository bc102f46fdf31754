import { CORE_SERVICES, callerTable, SERVICE_NAMES, type ServiceName } from '@writ/identity';
import { beforeAll, describe, expect, it } from 'vitest';
import { AGENTS, deployment, EDGE, EVERYTHING, helm, PORTS, WITH_PROXY } from './chart-fixture.ts';
import { canReach, type Place } from './reach.ts';
import { type Manifest, manifestsOf, renderChart } from './render-chart.ts';

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
 * Returns the connections that the caller table requires. A service connects to the services that it may call. To fetch
 * signing keys, it also connects to its callers, and to spawn-budget if one of its RPCs requires a slot grant.
 */
function neededConnections(): Set<string> {
  const connections = new Set<string>();
  for (const [rpc, row] of callerTable) {
    if (!('services' in row) || rpc.includes('ToolProvider')) continue;
    for (const server of SERVED_BY[rpc.split('.')[1] ?? ''] ?? []) {
      for (const caller of row.services) {
        connections.add(`${caller} > ${server}`).add(`${server} > ${caller}`);
      }
      if (row.slotGrant !== undefined) connections.add(`${server} > spawn-budget`);
    }
  }
  return connections;
}

describe.skipIf(helm === undefined)('the network policies of the chart', () => {
  let manifests: Manifest[] = [];
  let policies: Manifest[] = [];
  const pod = (service: ServiceName): Place => ({
    labels: deployment(manifests, service).spec.template.metadata.labels,
  });
  const isPublic = (service: ServiceName, port: number) =>
    (service === 'supervisor' && port === EDGE) || (service === 'agent-proxy' && port === AGENTS);
  const clientsOf = (to: Place, port: number) =>
    SERVICE_NAMES.filter((service) => canReach(policies, pod(service), to, port));

  beforeAll(() => {
    manifests = manifestsOf(renderChart(helm ?? '', EVERYTHING));
    policies = manifests.filter(({ kind }) => kind === 'NetworkPolicy');
  });

  it('permit exactly the connections that the caller table and key requests need (SYS-6)', () => {
    const pairs = SERVICE_NAMES.flatMap((from) =>
      SERVICE_NAMES.filter((to) => to !== from).map((to) => ({ from, to })),
    );
    const reached = pairs
      .filter(({ from, to }) => canReach(policies, pod(from), pod(to), PORTS[to]))
      .map(({ from, to }) => `${from} > ${to}`);
    expect(reached.sort()).toEqual([...neededConnections()].sort());
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

  it('permit model providers only for the meter, tools only for the gateway, and neither for the worker (SYS-6)', () => {
    const addresses = { model: '198.18.0.1', tool: '198.18.0.2' };
    const own = { ipBlock: { cidr: `${addresses.model}/32` } };
    const apart = renderChart(helm ?? '', {
      networkPolicy: {
        models: { to: [own], ports: [443] },
        tools: { to: [{ ipBlock: { cidr: `${addresses.tool}/32` } }], ports: [443] },
      },
    });
    const previousPolicies = policies;
    policies = manifestsOf(apart).filter(({ kind }) => kind === 'NetworkPolicy');
    try {
      expect(clientsOf({ address: addresses.model }, 443)).toEqual(['execution-meter']);
      expect(clientsOf({ address: addresses.tool }, 443)).toEqual(['tool-gateway']);
      expect(clientsOf({ address: '203.0.113.1' }, 443)).toEqual([]);
    } finally {
      policies = previousPolicies;
    }
    // By default, the meter and the gateway can reach public addresses but no private addresses.
    expect(clientsOf({ address: '203.0.113.1' }, 443)).toEqual(['execution-meter', 'tool-gateway']);
    for (const address of ['10.1.2.3', '169.254.169.254', '192.168.1.1', '172.20.0.1'])
      expect([address, clientsOf({ address }, 443)]).toEqual([address, []]);
    expect(clientsOf({ address: '203.0.113.1' }, 80)).toEqual([]);
    expect(clientsOf({ address: '198.51.100.7' }, 443)).toContain('supervisor');
  });

  it('permit unknown clients to reach the public port and no internal port', () => {
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

  it('permit every service to reach its database, NATS and the collector', () => {
    const named = (name: string): Place => ({ labels: { 'app.kubernetes.io/name': name } });
    expect(clientsOf(named('postgresql'), 5432)).toEqual([...SERVICE_NAMES]);
    expect(clientsOf(named('nats'), 4222)).toEqual([...CORE_SERVICES]);
    expect(clientsOf(named('opentelemetry-collector'), 4317)).toEqual([...SERVICE_NAMES]);
  });

  it('let pods of external agents reach agent-proxy, and nothing else (AP-1, SYS-6)', () => {
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
    // No service can reach an agent; agents only make calls.
    expect(clientsOf(agent, 443)).toEqual([]);
    const clients = [{ podSelector: { matchLabels: agent.labels } }];
    const previousPolicies = policies;
    policies = manifestsOf(
      renderChart(helm ?? '', { services: WITH_PROXY, networkPolicy: { agents: clients } }),
    ).filter(({ kind }) => kind === 'NetworkPolicy');
    try {
      expect(canReach(policies, agent, pod('agent-proxy'), AGENTS)).toBe(true);
      const other: Place = { labels: {}, namespace: { name: 'other' } };
      expect(canReach(policies, other, pod('agent-proxy'), AGENTS)).toBe(false);
    } finally {
      policies = previousPolicies;
    }
  });
});
