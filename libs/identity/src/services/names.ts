/** The services of every deployment; each has its own signing key. */
export const CORE_SERVICES = [
  'supervisor',
  'spawn-budget',
  'execution-meter',
  'tool-gateway',
  'agent-worker',
] as const;

/** One of {@link CORE_SERVICES}. */
export type CoreService = (typeof CORE_SERVICES)[number];

/** All services: agent-proxy is optional. */
export const SERVICE_NAMES = [...CORE_SERVICES, 'agent-proxy'] as const;

/** One of {@link SERVICE_NAMES}. */
export type ServiceName = (typeof SERVICE_NAMES)[number];

/** Whether `value` names one of the services. */
export function isServiceName(value: unknown): value is ServiceName {
  return SERVICE_NAMES.some((name) => name === value);
}

/**
 * The services that act for agents with agent tokens: agent-worker runs agents, agent-proxy acts for external agents.
 */
export const AGENT_HOSTS: readonly ServiceName[] = ['agent-worker', 'agent-proxy'];

/** A server with a gate: a service, or a tool provider of the gateway (TG-6). */
export type ServerName = ServiceName | typeof TOOL_PROVIDER;

/** Audience of the service token that a gateway presents to a tool provider. */
export const TOOL_PROVIDER = 'tool-provider';

/** Audience of a slot grant: every service accepts it (SB-4). */
export const EVERY_SERVICE = 'writ';

/** Audience of a checkpoint: verifiers of the audit chain (SV-8). */
export const AUDIT = 'audit';
