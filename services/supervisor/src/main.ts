import { once } from 'node:events';
import { createInProcessBus } from '@writ/bus';
import { createTelemetry } from '@writ/telemetry';
import { readProcessConfig, readSupervisorConfig } from './config.ts';
import { TIMELINE_CONSUMER } from './events.ts';
import { createSupervisor } from './service.ts';

/** A supervisor in a process of its own, until SIGTERM or SIGINT. */
async function main(): Promise<void> {
  const config = readSupervisorConfig();
  const { addressOf, telemetry: options } = readProcessConfig();
  const telemetry = createTelemetry({ service: 'supervisor', ...options });
  // Its own events reach its own timeline; those of other processes need a bus that they share.
  const bus = createInProcessBus({
    expects: [TIMELINE_CONSUMER],
    onError: (error, failure) => telemetry.log.warn({ err: error, ...failure }, 'not taken'),
  });
  const service = await createSupervisor(config, { telemetry, bus, addressOf });
  try {
    await service.start();
    console.log(`supervisor listens on ${service.address}, for clients on ${service.edgeAddress}`);
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
