import { assertRows, internalGate } from '@writ/identity';
import { isWritError, UnavailableError } from '@writ/kernel';
import { createRpcServer, type RpcServer } from '@writ/rpc';
import type { RpcContext } from '../context.ts';
import { meterRoutes } from './index.ts';

/**
 * Binds the meter's door for services; it does not serve yet.
 * @throws UnavailableError PORT_IN_USE naming the setting; InternalError NO_CALLER_ROW
 */
export async function openDoor(context: RpcContext): Promise<RpcServer> {
  const { config, telemetry, verifier } = context;
  const routes = meterRoutes(context);
  assertRows(routes);
  try {
    return await createRpcServer({
      host: config.host,
      port: config.port,
      routes,
      gate: internalGate({ service: 'execution-meter', verifier, enforceSlotGrants: false }),
      telemetry,
      limits: MESSAGE_LIMITS,
    });
  } catch (error) {
    if (!isWritError(error) || error.reason !== 'PORT_IN_USE') throw error;
    const message = `${error.message} The setting is WRIT_EXECUTION_METER_PORT.`;
    throw new UnavailableError(error.reason, message, error.metadata, { cause: error });
  }
}

/** Long conversations with images are larger than other messages. */
const MESSAGE_LIMITS = { maxMessageBytes: 16 * 1024 * 1024 };
