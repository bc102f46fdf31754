/** Runs an agent worker in its own process. */
import { runService } from '@writ/service';
import { readAgentWorkerConfig } from './config.ts';
import { createAgentWorker } from './service.ts';

await runService({ name: 'agent-worker', read: readAgentWorkerConfig, create: createAgentWorker });
