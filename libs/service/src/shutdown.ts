import { settlesWithin } from '@writ/kernel';
import type { RpcServer } from '@writ/rpc';
import type { BackgroundWork } from './background-work.ts';
import type { Host } from './open-host.ts';
import { ResourceStack } from './resource-stack.ts';
import type { ServiceParts } from './service.ts';
import type { ServiceConfig } from './service-host.ts';

/** Maximum time to deliver the remaining events, ms; undelivered events stay in the outbox until the next start. */
const FLUSH_MS = 2_000;
/** Duration of a stop, ms, after which the service logs what the stop waits for. */
const SLOW_STOP_MS = 1_000;

/** The parts of a service that are stopped with it. */
export interface StoppableService {
  /** The listener for services. */
  readonly server: RpcServer;
  /** The listener for clients. */
  readonly edge?: RpcServer;
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
}

/**
 * Stops a service: health reports NOT_SERVING, listeners drain while `drain` of the service ends in-flight work, the
 * background work stops, and the outbox is flushed (SYS-4).
 */
export async function shutDown(
  opened: StoppableService,
  host: Pick<Host<ServiceConfig, ServiceParts>, 'stopMonitors' | 'telemetry' | 'outbox'>,
  drainMs: number,
): Promise<void> {
  host.stopMonitors();
  let waitsFor = 'in-flight calls';
  const slow = setTimeout(() => {
    host.telemetry.log.info({ waits_for: waitsFor }, 'service is still stopping');
  }, SLOW_STOP_MS);
  try {
    await drain(opened, drainMs);
    waitsFor = 'background work and events';
    const { background = [], limits } = opened;
    const { backgroundMs, flushMs = FLUSH_MS } = limits ?? {};
    const stopped = stopInReverse(background);
    try {
      if (backgroundMs === undefined) await stopped;
      else await settlesWithin(stopped, backgroundMs);
    } finally {
      if (host.outbox !== undefined) await settlesWithin(host.outbox.flush(), flushMs);
      await host.outbox?.stop();
    }
  } finally {
    clearTimeout(slow);
  }
}

async function drain(
  { server, edge, drain: endWork, limits }: StoppableService,
  drainMs: number,
): Promise<void> {
  const graceMs = limits?.callsMs ?? drainMs;
  const servers = edge === undefined ? [server] : [server, edge];
  for (const listener of servers) listener.setServing(false);
  await Promise.all([...servers.map((listener) => listener.close(graceMs)), endWork?.()]);
}

async function stopInReverse(background: readonly BackgroundWork[]): Promise<void> {
  const stops = new ResourceStack();
  for (const work of background) stops.defer(() => work.stop());
  await stops.close();
}
