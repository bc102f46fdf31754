import { once } from 'node:events';
import type { Bus } from '@writ/bus';
import type { ServiceName } from '@writ/identity';
import { createTelemetry } from '@writ/telemetry';
import { readProcessSettings } from './config.ts';
import { openBus } from './open-bus.ts';
import type { Service, ServiceParts } from './service.ts';

/** A service as its `main.ts` names it. */
export interface ServiceProgram<Config> {
  readonly name: ServiceName;
  /** Reads the service's own settings from the environment. */
  readonly read: () => Config;
  readonly create: (config: Config, parts: ServiceParts) => Promise<Service>;
}

/**
 * Runs a service as a process of its own, until SIGTERM or SIGINT. A start that fails says why in one
 * line on standard error, leaves nothing open, and ends with exit status 1.
 */
export async function runService<Config>(program: ServiceProgram<Config>): Promise<void> {
  try {
    await run(program);
  } catch (error) {
    console.error(error instanceof Error ? error.message : error);
    process.exitCode = 1;
  }
}

async function run<Config>({ name, read, create }: ServiceProgram<Config>): Promise<void> {
  const config = read();
  const settings = readProcessSettings();
  const telemetry = createTelemetry({ service: name, ...settings.telemetry });
  let bus: Bus | undefined;
  let service: Service | undefined;
  try {
    bus = await openBus(name, settings.nats, telemetry.log);
    service = await create(config, { telemetry, bus, addressOf: settings.addressOf });
    await service.start();
    const { address, edgeAddress } = service;
    const forClients = edgeAddress === undefined ? '' : `, for clients on ${edgeAddress}`;
    console.log(`${name} listens on ${address}${forClients}`);
    await Promise.race([once(process, 'SIGTERM'), once(process, 'SIGINT')]);
  } finally {
    await service?.stop();
    await bus?.close();
    await telemetry.shutdown();
  }
}
