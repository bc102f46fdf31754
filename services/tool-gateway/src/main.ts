/** The tool gateway in a process of its own. */
import { createInProcessBus } from '@writ/bus';
import { createTelemetry } from '@writ/telemetry';
import { readProcessConfig, readToolGatewayConfig } from './config.ts';
import { createToolGateway } from './service.ts';

async function main(): Promise<void> {
  const config = readToolGatewayConfig();
  const { addressOf, telemetry: options } = readProcessConfig();
  const telemetry = createTelemetry({ service: 'tool-gateway', ...options });
  // Nobody listens in this process; the supervisor learns of calls from their receipts (HK-1).
  const bus = createInProcessBus({
    onError: (error, failure) => telemetry.log.warn({ err: error, ...failure }, 'not taken'),
  });
  const gateway = await createToolGateway(config, { telemetry, bus, addressOf });
  await gateway.start();
  console.log(`tool-gateway listens on ${gateway.address}`);
  await signalled();
  await gateway.stop();
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
