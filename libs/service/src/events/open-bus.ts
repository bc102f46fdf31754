import {
  type Bus,
  createInProcessBus,
  HOOK_STREAMS,
  hookStream,
  OBSERVED_STREAM,
  OBSERVER,
  type StreamPlan,
  TIMELINE_CONSUMER,
} from '@writ/bus';
import type { NatsBusOptions } from '@writ/bus/nats';
import type { ServiceName } from '@writ/identity';
import { omitUndefined } from '@writ/kernel';
import type { Logger } from '@writ/telemetry';
import type { NatsAccess } from '../settings/config.ts';
import { busFailures, handlerFailures } from './bus-failures.ts';

/**
 * Opens the bus of a service process: NATS if a server is configured (HK-2), otherwise an in-process bus. Only the
 * supervisor subscribes to its in-process bus; the events of other services then remain in their outboxes.
 * @throws what `createNatsBus` throws if the server is not suitable or rejects the credentials
 */
export async function openBus(
  name: ServiceName,
  nats: NatsAccess | undefined,
  log: Logger,
): Promise<Bus> {
  const requiredConsumers = [TIMELINE_CONSUMER];
  if (nats === undefined) {
    return createInProcessBus({
      requiredConsumers,
      onError: handlerFailures(log, 'event handler failed'),
    });
  }
  const { createNatsBus } = await loadNats();
  const isSupervisor = name === 'supervisor';
  return await createNatsBus({
    ...connectionOf(nats, name),
    // The supervisor consumes all events and creates all streams, including the stream of observers. The other services
    // can access only their own stream.
    streams: isSupervisor ? [...HOOK_STREAMS, OBSERVED_STREAM] : streamsOf(name),
    createsStreams: isSupervisor,
    requiredConsumers,
    onError: busFailures(log, nats.servers, 'NATS connection or message handler failed'),
  });
}

/**
 * Opens the bus of a program that observes events. The program reads copies of the events from the durable consumer of
 * its NATS user; it can neither publish nor delay events (HK-3).
 * @throws what `createNatsBus` throws if the server is not suitable or rejects the credentials
 */
export async function openObserverBus(
  nats: NatsAccess,
  onError: (error: unknown) => void,
): Promise<Bus> {
  const { createNatsBus } = await loadNats();
  return await createNatsBus({
    ...connectionOf(nats, OBSERVER),
    streams: [OBSERVED_STREAM],
    createsStreams: false,
    onError,
  });
}

/** Loads the NATS client, which a process without NATS does not need. */
function loadNats(): Promise<typeof import('@writ/bus/nats')> {
  return import('@writ/bus/nats');
}

function connectionOf(
  { servers, user, password, caFile, certFile, keyFile }: NatsAccess,
  name: string,
): Pick<NatsBusOptions, 'servers' | 'name' | 'credentials' | 'tls'> {
  return {
    servers,
    name,
    ...(password !== undefined && { credentials: { user: user ?? name, password } }),
    ...((caFile ?? certFile) !== undefined && {
      tls: {
        ...omitUndefined({ caFile, certFile, keyFile }),
      },
    }),
  };
}

/** Returns the streams of a service; none for agent-proxy, which emits no events. */
function streamsOf(name: Exclude<ServiceName, 'supervisor'>): StreamPlan[] {
  return name === 'agent-proxy' ? [] : [hookStream(name)];
}
