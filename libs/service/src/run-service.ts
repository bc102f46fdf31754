import { once } from 'node:events';
import { openServiceTls, type ServiceName, type ServiceTls } from '@writ/identity';
import { createTelemetry } from '@writ/telemetry';
import { type ProcessSettings, readProcessSettings } from './config.ts';
import { openBus } from './open-bus.ts';
import type { Service, ServiceParts } from './service.ts';

/** A service as its `main.ts` names it. */
export interface ServiceProgram<Config> {
  readonly name: ServiceName;
  /** Reads the service's own settings from the environment. */
  readonly read: () => Config;
  readonly create: (config: Config, parts: ServiceParts) => Promise<Service>;
}

/** Longest that a stop may take: less than the 30 s after which Kubernetes kills. */
const STOP_WITHIN_MS = 25_000;

/**
 * Runs a service as a process of its own, until SIGTERM or SIGINT. It drains then; after 25 s, or at a
 * second signal, it ends where it stands, which is as safe as kill -9. A start that fails says why in one
 * line on standard error, leaves nothing open, and ends with exit status 1.
 */
export async function runService<Config>(program: ServiceProgram<Config>): Promise<void> {
  try {
    await run(program);
  } catch (error) {
    console.error(messageOf(error));
    process.exitCode = 1;
  }
}

function messageOf(error: unknown): unknown {
  return error instanceof Error ? error.message : error;
}

async function run<Config>({ name, read, create }: ServiceProgram<Config>): Promise<void> {
  const config = read();
  const settings = readProcessSettings();
  // What fails to close keeps nothing else open, for that would keep the process alive.
  const opened = new AsyncDisposableStack();
  try {
    await serve({ name, create, config, settings, opened });
  } catch (error) {
    await opened.disposeAsync().catch((further: unknown) => console.error(messageOf(further)));
    throw error;
  }
  await opened.disposeAsync();
}

async function serve<Config>({
  name,
  create,
  config,
  settings,
  opened,
}: Pick<ServiceProgram<Config>, 'name' | 'create'> & {
  readonly config: Config;
  readonly settings: ProcessSettings;
  readonly opened: AsyncDisposableStack;
}): Promise<void> {
  const telemetry = createTelemetry({ service: name, ...settings.telemetry });
  opened.defer(() => telemetry.shutdown());
  let tls: ServiceTls | undefined;
  if (settings.tls !== undefined) {
    tls = opened.adopt(
      openServiceTls({
        service: name,
        ...settings.tls,
        log: telemetry.log,
        metrics: telemetry.metrics,
      }),
      (files) => files.close(),
    );
  }
  const bus = opened.adopt(await openBus(name, settings.nats, telemetry.log), (open) =>
    open.close(),
  );
  const { addressOf, cleartext } = settings;
  const parts = { telemetry, bus, addressOf, tls, cleartext };
  const service = opened.adopt(await create(config, parts), (running) => running.stop());
  await service.start();
  const { address, edgeAddress } = service;
  const forClients = edgeAddress === undefined ? '' : `, for clients on ${edgeAddress}`;
  // Heard from before it says that it listens: whoever reads that line may tell it to end at once.
  const told = signalled();
  console.log(`${name} listens on ${address}${forClients}`);
  await told;
  endInTime(name);
}

async function signalled(): Promise<void> {
  await Promise.race([once(process, 'SIGTERM'), once(process, 'SIGINT')]);
}

function endInTime(name: ServiceName): void {
  const end = (why: string) => {
    console.error(`${name} ended before it had drained: ${why}.`);
    process.exit(1);
  };
  setTimeout(() => end(`it took longer than ${STOP_WITHIN_MS} ms`), STOP_WITHIN_MS).unref();
  void signalled().then(() => end('it was told to once more'));
}
