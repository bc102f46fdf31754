import { assertRows, internalGate } from '@writ/identity';
import { createRpcServer, type RpcServer } from '@writ/rpc';
import type { ServiceParts } from '@writ/service';
import { meterRoutes } from './index.ts';
import type { RpcContext } from './rpc-context.ts';

/**
 * Binds the meter's door for services; it does not serve yet.
 * @throws UnavailableError PORT_IN_USE naming the setting; InternalError CALLER_RULE_MISSING
 */
export async function openDoor(
  context: RpcContext,
  { tls, cleartext, loopback }: Pick<ServiceParts, 'tls' | 'cleartext' | 'loopback'>,
): Promise<RpcServer> {
  const { config, telemetry, verifier } = context;
  const routes = meterRoutes(context);
  assertRows(routes);
  return await createRpcServer({
    host: config.host,
    port: config.port,
    portSetting: 'WRIT_EXECUTION_METER_PORT',
    tls: tls?.server,
    cleartext,
    loopback,
    routes,
    gate: internalGate({
      service: 'execution-meter',
      verifier,
      enforceSlotGrants: true,
      trustDomain: tls?.trustDomain,
    }),
    telemetry,
    limits: MESSAGE_LIMITS,
  });
}

/** Long conversations with images are larger than other messages. */
const MESSAGE_LIMITS = { maxMessageBytes: 16 * 1024 * 1024 };
