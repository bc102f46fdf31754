import type { ServiceName } from '@writ/identity';
import { requireDeployTool } from '../../../scripts/deploy-tools.ts';
import type { Manifest } from './render-chart.ts';

/** Path of the helm binary; undefined if it is not installed. */
export const helm = requireDeployTool('helm');

/** The internal ports of the services. */
export const PORTS: Readonly<Record<ServiceName, number>> = {
  supervisor: 50_051,
  'spawn-budget': 50_052,
  'execution-meter': 50_053,
  'tool-gateway': 50_054,
  'agent-worker': 50_055,
  'agent-proxy': 50_056,
};
/** The public port of the supervisor. */
export const EDGE = 8080;
/** The port of agent-proxy for external agents. */
export const AGENTS = 8081;

/** Enables the optional service. */
export const WITH_PROXY = { 'agent-proxy': { enabled: true } };

/** Values that enable every option. */
export const EVERYTHING = {
  telemetry: { endpoint: 'http://collector:4317' },
  files: { agents: 'agents', models: 'models', tools: 'tools' },
  edge: { tlsSecret: 'edge' },
  env: { WRIT_SLOT_LEASE: '20s' },
  services: WITH_PROXY,
  agentProxy: { tlsSecret: 'agents' },
  database: { statementTimeout: '4s', poolSize: 8 },
  networkPolicy: { identityProvider: { to: [{ ipBlock: { cidr: '198.51.100.0/24' } }] } },
};

/** The Deployment of a service. */
export function deployment(rendered: readonly Manifest[], service: ServiceName): Manifest {
  const found = rendered.find(
    ({ kind, metadata }) => kind === 'Deployment' && metadata.name === `writ-${service}`,
  );
  if (found === undefined) throw new Error(`There is no Deployment of ${service}.`);
  return found;
}
