export { readSupervisorConfig, SUPERVISOR_DEFAULTS, type SupervisorConfig } from './config.ts';
export { AGENTS_SCHEMA } from './domain/manifest/agents-schema.ts';
export { createSupervisor, type SupervisorService } from './service.ts';
