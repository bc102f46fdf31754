/** Runs the supervisor in a process of its own. */
import { runService } from '@writ/service';
import { readSupervisorConfig } from './config.ts';
import { createSupervisor } from './service.ts';

await runService({ name: 'supervisor', read: readSupervisorConfig, create: createSupervisor });
