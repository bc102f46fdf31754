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
  /** The services whose keys are trusted; default: all services with a known address. */
  readonly trusts?: readonly ServiceName[];
  readonly open: (host: ServiceHost<C, P>) => Promise<OpenedService<E>>;
}

/**
 * Defines a service. All services have the same start order, drain order and health reporting.
 *
 * Opening a service loads the signing key and calls `open`; trusted keys are fetched on demand. If `open` throws,
 * everything that is already open is closed. Starting it runs `prepare`, starts the outbox relay and the background
 * work, and then reports SERVING, or NOT_SERVING while the database is unavailable, after the database went back in
 * time, and while the clock is skewed. Stopping it reports NOT_SERVING, drains the listeners while `drain` ends
 * in-flight work, stops the background work, flushes the outbox and closes the resources in reverse order. Stopping
 * again returns the same promise. If a stop takes over a second, the service logs what it waits for.
 *
 * @returns a function that creates the service. The created service has bound its ports, but serves nothing before
 *   `start()`. The function rejects with the errors of opening the store, the keys and the listeners.
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
      // Rejects with the error of opening; errors of closing are only logged.
      await resources.close().catch((closing: unknown) => {
        parts.telemetry.log.warn({ err: closing }, 'failed to close resources');
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
