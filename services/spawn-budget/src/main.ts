/** spawn-budget in a process of its own. */
import { createInProcessBus } from '@writ/bus';
import { createTelemetry } from '@writ/telemetry';
import { readProcessConfig, readSpawnBudgetConfig } from './config.ts';
import { createSpawnBudget } from './service.ts';

async function main(): Promise<void> {
  const config = readSpawnBudgetConfig();
  const { addressOf, telemetry: options } = readProcessConfig();
  const telemetry = createTelemetry({ service: 'spawn-budget', ...options });
  const bus = createInProcessBus({
    onError: (error, failure) => telemetry.log.warn({ err: error, ...failure }, 'not taken'),
  });
  const service = await createSpawnBudget(config, { telemetry, bus, addressOf });
  await service.start();
  console.log(`spawn-budget listens on ${service.address}`);
  await signalled();
  await service.stop();
  await telemetry.shutdown();
}

function signalled(): Promise<void> {
  return new Promise((resolve) => {
    process.once('SIGTERM', () => resolve());
    process.once('SIGINT', () => resolve());
  });
}

await main().catch((error: unknown) => {
  console.error(error instanceof Error ? error.message : error);
  process.exitCode = 1;
});
