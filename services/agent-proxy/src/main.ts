/** Runs agent-proxy in its own process. */
import { runService } from '@writ/service';
import { readAgentProxyConfig } from './config.ts';
import { createAgentProxy } from './service.ts';

await runService({ name: 'agent-proxy', read: readAgentProxyConfig, create: createAgentProxy });
