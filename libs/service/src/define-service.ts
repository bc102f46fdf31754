import type { ServiceName } from '@writ/identity';
import { settlesWithin } from '@writ/kernel';
import type { RpcServer } from '@writ/rpc';
import { Host, type ServiceConfig, type ServiceHost } from './host.ts';
import { ResourceStack } from './resource-stack.ts';
import type { Service, ServiceParts } from './service.ts';

/** How long the last events may take to be delivered; the others stay in the outbox for the next start. */
const FLUSH_MS = 2_000;
/** A stop that takes longer logs what it waits for, ms. */
const SLOW_STOP_MS = 1_000;

/** Work that a service does besides serving calls. */
export interface BackgroundWork {
  start(): Promise<void> | void;
  /** Begins nothing more; resolves when the current work has ended. */
  stop(): Promise<void> | void;
}

/** A service that is open but not started. */
export interface OpenedService<E extends object> {
  /** The listener for services. */
  readonly server: RpcServer;
  /** The listener for clients. */
  readonly edge?: RpcServer;
  /** Runs once before anything else starts. */
  readonly prepare?: () => Promise<void>;
  /** Started in this order, stopped in reverse. */
  readonly background?: readonly BackgroundWork[];
  /** Ends in-flight work while the listeners drain. */
  readonly drain?: () => Promise<void> | void;
  readonly limits?: {
    /** Maximum wait for in-flight calls; default `drainMs` of the configuration. */
    readonly callsMs?: number;
    /** Maximum wait for background work to stop; default: none. */
    readonly backgroundMs?: number;
    /** Maximum wait for the last events; default 2 s. */
    readonly flushMs?: number;
  };
  /** Further properties of the {@link Service}. */
  readonly exposes?: E;
}

/** The declaration of a service. */
export interface ServiceDefinition<
  N extends ServiceName,
  C extends ServiceConfig,
  P extends ServiceParts,
  E extends object,
> {
  readonly name: N;
  /** The services whose keys are trusted; default: all whose address is known. */
  readonly trusts?: readonly ServiceName[];
  readonly open: (host: ServiceHost<C, P>) => Promise<OpenedService<E>>;
}

/**
 * Defines a service: one start order, one drain order and one health state for all of them.
 *
 * - Open: signing key, trusted keys, then what `open` opens. If it throws, everything opened so far is closed.
 * - Start: `prepare`, outbox relay, background work, then health reports SERVING, and NOT_SERVING while the database
 *   is unavailable or the clock is far from those of the peers.
 * - Stop: health reports NOT_SERVING, listeners drain while `drain` ends in-flight work; background work stops;
 *   the outbox is flushed; resources close in reverse order. Stopping again returns the same promise. A stop that takes
 *   over a second logs what it waits for.
 *
 * @returns the function that creates the service: its ports are bound, and nothing is served before `start()`.
 *   It throws what opening the store, the keys and the listeners throws.
 */
export function defineService<
  N extends ServiceName,
  C extends ServiceConfig,
  P extends ServiceParts = ServiceParts,
  E extends object = object,
>(
  definition: ServiceDefinition<N, C, P, E>,
): (config: C, parts: P) => Promise<Service & { readonly name: N } & E> {
  return async (config, parts) => {
    const resources = new ResourceStack();
    try {
      return await create(definition, config, parts, resources);
    } catch (error) {
      await resources.close();
      throw error;
    }
  };
}

async function create<
  N extends ServiceName,
  C extends ServiceConfig,
  P extends ServiceParts,
  E extends object,
>(
  definition: ServiceDefinition<N, C, P, E>,
  config: C,
  parts: P,
  resources: ResourceStack,
): Promise<Service & { readonly name: N } & E> {
  const { name } = definition;
  const host = await Host.open(definition, config, parts, resources);
  const opened = await definition.open(host);
  const { server, edge, background = [], exposes } = opened;
  const servers = edge === undefined ? [server] : [server, edge];
  let stopping: Promise<void> | undefined;

  const start = async (): Promise<void> => {
    await opened.prepare?.();
    host.outbox?.start();
    for (const work of background) await work.start();
    host.monitorHealth((isServing) => {
      for (const listener of servers) listener.setServing(isServing);
    });
  };
  const stop = async (): Promise<void> => {
    host.stopMonitors();
    let waitsFor = 'in-flight calls';
    const slow = setTimeout(() => {
      host.telemetry.log.info({ waits_for: waitsFor }, 'service is still stopping');
    }, SLOW_STOP_MS);
    try {
      await drain(opened, servers, config.drainMs);
      waitsFor = 'background work and events';
      const { backgroundMs, flushMs = FLUSH_MS } = opened.limits ?? {};
      const stopped = stopInReverse(background);
      if (backgroundMs === undefined) await stopped;
      else await settlesWithin(stopped, backgroundMs);
      if (host.outbox !== undefined) await settlesWithin(host.outbox.flush(), flushMs);
      await host.outbox?.stop();
    } finally {
      clearTimeout(slow);
      await resources.close();
    }
  };
  const service: Service & { readonly name: N } = {
    name,
    address: server.address,
    get commits() {
      return host.commits;
    },
    start,
    stop: () => {
      stopping ??= stop();
      return stopping;
    },
  };
  return Object.assign(service, exposes) as Service & { readonly name: N } & E;
}

async function drain(
  opened: OpenedService<object>,
  servers: readonly RpcServer[],
  drainMs: number,
): Promise<void> {
  const graceMs = opened.limits?.callsMs ?? drainMs;
  for (const server of servers) server.setServing(false);
  await Promise.all([...servers.map((server) => server.close(graceMs)), opened.drain?.()]);
}

async function stopInReverse(background: readonly BackgroundWork[]): Promise<void> {
  for (const work of background.toReversed()) await work.stop();
}
