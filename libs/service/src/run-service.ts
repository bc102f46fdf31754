import { once } from 'node:events';
import { openServiceTls, type ServiceName, type ServiceTls } from '@writ/identity';
import { isWritError } from '@writ/kernel';
import { createTelemetry } from '@writ/telemetry';
import { lockDataFolder } from './data-folder.ts';
import { openBus } from './events/open-bus.ts';
import { ResourceStack } from './resource-stack.ts';
import type { Service, ServiceParts } from './service.ts';
import { type ProcessSettings, readProcessSettings } from './settings/config.ts';

/** The settings of the service that `runService` itself uses. */
interface ProgramConfig {
  readonly dataDir: string;
  readonly store: { readonly dialect: 'sqlite' | 'postgres' };
}

/** The program of a service process. */
export interface ServiceProgram<C extends ProgramConfig> {
  readonly name: ServiceName;
  /** Reads the configuration of the service from the environment. */
  readonly read: () => C;
  readonly create: (config: C, parts: ServiceParts) => Promise<Service>;
}

/** Maximum duration of a shutdown: less than the 30 s grace period of Kubernetes. */
const SHUTDOWN_MS = 25_000;

/**
 * Runs a service as a process until SIGTERM or SIGINT, then drains it. If draining takes longer than 25 s or a second
 * signal arrives, the process exits at once with status 1, which is as safe as kill -9. A failed start closes
 * everything, prints the message of the error to standard error (several lines for several invalid settings) and exits
 * with status 1.
 */
export async function runService<C extends ProgramConfig>(
  program: ServiceProgram<C>,
): Promise<void> {
  try {
    await run(program);
  } catch (error) {
    console.error(messageOf(error));
    process.exitCode = 1;
  }
}

/** Returns the message of an error, with the address of the server if a database is unreachable. */
function messageOf(error: unknown): unknown {
  if (!(error instanceof Error)) return error;
  const isUnreachable = isWritError(error) && error.reason === 'STORE_UNREACHABLE';
  return isUnreachable && error.cause instanceof Error
    ? `${error.message} ${error.cause.message}`
    : error.message;
}

async function run<C extends ProgramConfig>({
  name,
  read,
  create,
}: ServiceProgram<C>): Promise<void> {
  const config = read();
  const settings = readProcessSettings();
  // Everything is closed even if something fails to close, because an open resource keeps the process alive.
  const opened = new ResourceStack();
  try {
    // Replicas may share a folder of keys, but not a SQLite file.
    if (config.store.dialect === 'sqlite') {
      opened.adopt(await lockDataFolder(config.dataDir, [name]), (lock) => lock.release());
    }
    await serve({ name, create, config, settings, opened });
  } catch (error) {
    await opened.close().catch((further: unknown) => console.error(messageOf(further)));
    throw error;
  }
  await opened.close();
}

async function serve<C extends ProgramConfig>({
  name,
  create,
  config,
  settings,
  opened,
}: Pick<ServiceProgram<C>, 'name' | 'create'> & {
  readonly config: C;
  readonly settings: ProcessSettings;
  readonly opened: ResourceStack;
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
  const { addressOf, workerPools, cleartext } = settings;
  const parts = { telemetry, bus, addressOf, workerPools, tls, cleartext };
  const service = opened.adopt(await create(config, parts), (running) => running.stop());
  await service.start();
  const { address, edgeAddress } = service;
  const forClients = edgeAddress === undefined ? '' : `, for clients on ${edgeAddress}`;
  // Registered before the line is printed, because the process that reads the line may send a signal at once.
  const shutdownSignal = signalled();
  console.log(`${name} listens on ${address}${forClients}`);
  await shutdownSignal;
  exitInTime(name);
}

async function signalled(): Promise<void> {
  await Promise.race([once(process, 'SIGTERM'), once(process, 'SIGINT')]);
}

function exitInTime(name: ServiceName): void {
  const exit = (why: string) => {
    console.error(`${name} exited before it had drained: ${why}.`);
    process.exit(1);
  };
  setTimeout(() => exit(`the shutdown took longer than ${SHUTDOWN_MS} ms`), SHUTDOWN_MS).unref();
  void signalled().then(() => exit('it received a second signal'));
}
