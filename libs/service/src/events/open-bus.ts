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
import type { NatsAccess } from '../settings/config.ts';

/**
 * Opens the bus of a service process: NATS if a server is configured (HK-2), otherwise an in-process bus without
 * subscribers, so that events remain in the outbox.
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
      onError: (error, failure) => log.warn({ err: error, ...failure }, 'event handler failed'),
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
    // The supervisor consumes all events and creates the streams; the others have access to their own only.
    streams: isSupervisor ? HOOK_STREAMS : [hookStream(name)],
    createsStreams: isSupervisor,
    requiredConsumers,
    onError: (error, failure) =>
      log.warn({ err: error, ...failure }, 'NATS connection or message handler failed'),
  });
}
