// Started and killed by worker-process.ts: a worker without event subscribers, so that events stay in its outbox.
import { createInProcessBus } from '@writ/bus';
import type { ServiceName } from '@writ/identity';
import { createTelemetry } from '@writ/telemetry';
import { type AgentWorkerConfig, createAgentWorker } from '../src/index.ts';

interface Settings {
  readonly config: AgentWorkerConfig;
  readonly addresses: Readonly<Partial<Record<ServiceName, string>>>;
}

const { config, addresses } = JSON.parse(process.argv[2] ?? '') as Settings;
const worker = await createAgentWorker(config, {
  telemetry: createTelemetry({ service: 'agent-worker', logLevel: 'silent' }),
  bus: createInProcessBus({ requiredConsumers: ['unused'], onError: () => undefined }),
  addressOf: (service) => addresses[service] ?? '',
});
await worker.start();
console.log(worker.address);
