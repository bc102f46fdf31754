/** A worker process that reports its resident memory. */
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
  // Collect garbage first, so that only live memory counts.
  globalThis.gc?.();
  process.send?.(process.memoryUsage().rss);
});
// The parent process has exited.
process.once('disconnect', () => process.exit());
process.once('SIGTERM', () => {
  void worker.stop().then(() => process.exit());
});
process.send?.(worker.address);
