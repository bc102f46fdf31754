/** A worker in a process of its own, which tells its resident memory when it is asked. */
import { type AgentWorkerConfig, createAgentWorker } from '@writ/agent-worker';
import { createInProcessBus } from '@writ/bus';
import type { ServiceName } from '@writ/identity';
import { createTelemetry } from '@writ/telemetry';

interface Settings {
  readonly config: AgentWorkerConfig;
  readonly addresses: Readonly<Partial<Record<ServiceName, string>>>;
}

const { config, addresses } = JSON.parse(process.argv[2] ?? '') as Settings;
const worker = await createAgentWorker(config, {
  telemetry: createTelemetry({ service: 'agent-worker', logLevel: 'error' }),
  bus: createInProcessBus({ onError: () => undefined }),
  addressOf: (service) => addresses[service] ?? '',
});
await worker.start();
process.on('message', () => {
  // Garbage that is not collected yet is nobody's memory.
  globalThis.gc?.();
  process.send?.(process.memoryUsage().rss);
});
// Whoever started it is gone.
process.once('disconnect', () => process.exit());
process.once('SIGTERM', () => {
  void worker.stop().then(() => process.exit());
});
process.send?.(worker.address);
