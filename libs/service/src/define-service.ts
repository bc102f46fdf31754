import type { ServiceName } from '@writ/identity';
import { Host } from './open-host.ts';
import { ResourceStack } from './resource-stack.ts';
import type { Service, ServiceParts } from './service.ts';
import type { ServiceConfig, ServiceHost } from './service-host.ts';
import { type StoppableService, shutDown } from './shutdown.ts';

/** A service that is open but not started. */
export interface OpenedService<E extends object> extends StoppableService {
  /** Runs once before anything else starts. */
  readonly prepare?: () => Promise<void>;
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
      // The reason is why the service did not open, not what then failed to close.
      await resources.close().catch((closing: unknown) => {
        parts.telemetry.log.warn({ err: closing }, 'failed to close what was opened');
      });
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
    try {
      await shutDown(opened, host, config.drainMs);
    } finally {
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
