export { AGENTS_SCHEMA } from './app/definitions/agents-schema.ts';
export { readSupervisorConfig, SUPERVISOR_DEFAULTS, type SupervisorConfig } from './config.ts';
export { createSupervisor, type SupervisorService } from './service.ts';
