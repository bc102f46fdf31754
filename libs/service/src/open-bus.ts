import {
  type Bus,
  createInProcessBus,
  createNatsBus,
  HOOK_STREAMS,
  hookStream,
  TIMELINE_CONSUMER,
} from '@writ/bus';
import type { ServiceName } from '@writ/identity';
import type { Logger } from '@writ/telemetry';
import type { NatsAccess } from './config.ts';

/**
 * Opens the bus of a service in a process of its own: NATS where the settings name a server (HK-2),
 * else one that nobody shares, so that events stay in the outbox.
 * @throws what `createNatsBus` throws when the server is unfit or refuses the credentials
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
      onError: (error, failure) => log.warn({ err: error, ...failure }, 'not taken'),
    });
  }
  const { servers, user = name, password, caFile, certFile, keyFile } = nats;
  const isSupervisor = name === 'supervisor';
  return await createNatsBus({
    servers,
    name,
    ...(password !== undefined && { credentials: { user, password } }),
    ...((caFile ?? certFile) !== undefined && {
      tls: {
        ...(caFile !== undefined && { caFile }),
        ...(certFile !== undefined && { certFile }),
        ...(keyFile !== undefined && { keyFile }),
      },
    }),
    // Whoever takes the events makes what keeps them; the others see no stream but their own.
    streams: isSupervisor ? HOOK_STREAMS : [hookStream(name)],
    createsStreams: isSupervisor,
    requiredConsumers,
    onError: (error, failure) =>
      log.warn({ err: error, ...failure }, 'The way to NATS, or what takes its messages, failed.'),
  });
}
