import type { ServiceName } from '@writ/identity';

const DEFAULT_PORTS: Readonly<Record<ServiceName, number>> = {
  supervisor: 50_051,
  'spawn-budget': 50_052,
  'execution-meter': 50_053,
  'tool-gateway': 50_054,
  'agent-worker': 50_055,
  'agent-proxy': 50_056,
};

/** The default port of a service's listener. */
export function defaultPort(service: ServiceName): number {
  return DEFAULT_PORTS[service];
}

/** The name of a variable of a service, such as `WRIT_TOOL_GATEWAY_PORT`. */
export function variableName(service: ServiceName, what: string): string {
  return `WRIT_${service.toUpperCase().replaceAll('-', '_')}_${what}`;
}
