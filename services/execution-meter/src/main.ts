import { once } from 'node:events';
import { createInProcessBus } from '@writ/bus';
import { createTelemetry } from '@writ/telemetry';
import { readExecutionMeterConfig, readProcessConfig } from './config.ts';
import { createExecutionMeter } from './service.ts';

/** An execution meter in a process of its own, until SIGTERM or SIGINT. */
async function main(): Promise<void> {
  const config = readExecutionMeterConfig();
  const { addressOf, telemetry: options } = readProcessConfig();
  const telemetry = createTelemetry({ service: 'execution-meter', ...options });
  // Events stay in the outbox until there is a bus that services of several processes share.
  const bus = createInProcessBus({
    expects: ['supervisor-timeline'],
    onError: (error, failure) => telemetry.log.warn({ err: error, ...failure }, 'not taken'),
  });
  const service = await createExecutionMeter(config, { telemetry, bus, addressOf });
  try {
    await service.start();
    console.log(`execution-meter listens on ${service.address}`);
    await Promise.race([once(process, 'SIGTERM'), once(process, 'SIGINT')]);
  } finally {
    await service.stop();
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
