/** Serves the refund tools in a separate process. */
import { once } from 'node:events';
import { createTelemetry } from '@writ/telemetry';
import { readProviderConfig } from './config.ts';
import { serveTools } from './serve-tools.ts';

async function main(): Promise<void> {
  const { logLevel, ...config } = readProviderConfig();
  const telemetry = createTelemetry({ service: 'refund-tools', logLevel });
  const served = await serveTools(config, telemetry);
  const terminated = Promise.race([once(process, 'SIGTERM'), once(process, 'SIGINT')]);
  console.log(`refund tools listen on ${served.address}`);
  await terminated;
  await served.close();
  await telemetry.shutdown();
}

await main().catch((error: unknown) => {
  console.error(error instanceof Error ? error.message : error);
  process.exitCode = 1;
});
