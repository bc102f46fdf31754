export { loadAgents } from './app/definitions/agents-file.ts';
export { type AgentInCode, createAgent, functionsOf } from './app/definitions/agents-in-code.ts';
export { AGENTS_SCHEMA } from './app/definitions/agents-schema.ts';
export { NOTIFICATIONS_SCHEMA } from './app/notify/notifications-schema.ts';
export { readSupervisorConfig, SUPERVISOR_DEFAULTS, type SupervisorConfig } from './config.ts';
export type { AgentSettings } from './domain/manifest/agent-definition.ts';
export type { AgentManifest } from './domain/manifest/agent-manifest.ts';
export { createSupervisor, type SupervisorService } from './service.ts';
