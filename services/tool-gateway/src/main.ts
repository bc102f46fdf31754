/** The tool gateway in a process of its own. */
import { runService } from '@writ/service';
import { readToolGatewayConfig } from './config.ts';
import { createToolGateway } from './service.ts';

await runService({ name: 'tool-gateway', read: readToolGatewayConfig, create: createToolGateway });
