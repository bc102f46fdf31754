/** An agent worker in a process of its own. */
import { runService } from '@writ/service';
import { readAgentWorkerConfig } from './config.ts';
import { createAgentWorker } from './service.ts';

await runService({ name: 'agent-worker', read: readAgentWorkerConfig, create: createAgentWorker });
