/** agent-proxy in a process of its own. */
import { runService } from '@writ/service';
import { readAgentProxyConfig } from './config.ts';
import { createAgentProxy } from './service.ts';

await runService({ name: 'agent-proxy', read: readAgentProxyConfig, create: createAgentProxy });
