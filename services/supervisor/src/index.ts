export { readSupervisorConfig, SUPERVISOR_DEFAULTS, type SupervisorConfig } from './config.ts';
export { TIMELINE_CONSUMER } from './events.ts';
export { createSupervisor, type SupervisorParts, type SupervisorService } from './service.ts';
