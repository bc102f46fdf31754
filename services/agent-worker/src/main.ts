import { once } from 'node:events';
import { createInProcessBus } from '@writ/bus';
import { createTelemetry } from '@writ/telemetry';
import { readAgentWorkerConfig, readProcessConfig } from './config.ts';
import { createAgentWorker } from './service.ts';

/** A worker in a process of its own, until SIGTERM or SIGINT. */
async function main(): Promise<void> {
  const config = readAgentWorkerConfig();
  const { addressOf, telemetry: options } = readProcessConfig();
  const telemetry = createTelemetry({ service: 'agent-worker', ...options });
  // Nobody listens in this process; events reach others over a bus that they share.
  const bus = createInProcessBus({
    onError: (error, failure) => telemetry.log.warn({ err: error, ...failure }, 'not taken'),
  });
  const worker = await createAgentWorker(config, { telemetry, bus, addressOf });
  try {
    await worker.start();
    console.log(`agent-worker listens on ${worker.address}`);
    await Promise.race([once(process, 'SIGTERM'), once(process, 'SIGINT')]);
  } finally {
    await worker.stop();
    await bus.close();
    await telemetry.shutdown();
  }
}

try {
  await main();
} catch (error) {
  console.error(error instanceof Error ? error.message : error);
  process.exitCode = 1;
}
