import { join } from 'node:path';
import {
  API_KEYS_FILE,
  assertRows,
  createOidc,
  internalGate,
  openApiKeys,
  publicGate,
  tenantRateLimit,
} from '@writ/identity';
import { createEdge, createRpcServer, type RpcServer } from '@writ/rpc';
import type { OrderContext } from '../orders/order-kind.ts';
import { internalRoutes, publicRoutes } from './index.ts';

/** The two doors of a supervisor, bound but not serving yet. */
export interface Doors {
  /** For services. */
  readonly internal: RpcServer;
  /** For people and clients. */
  readonly edge: RpcServer;
}

/**
 * Binds both doors.
 * @throws UnavailableError PORT_IN_USE naming the setting; InternalError NO_CALLER_ROW
 */
export async function openDoors(context: OrderContext): Promise<Doors> {
  const { config, telemetry, verifier, clock } = context;
  const forServices = internalRoutes(context);
  const forPeople = publicRoutes(context);
  assertRows([...forServices, ...forPeople]);
  const internal = await createRpcServer({
    host: config.host,
    port: config.port,
    portSetting: 'WRIT_SUPERVISOR_PORT',
    routes: forServices,
    gate: internalGate({ service: 'supervisor', verifier, enforceSlotGrants: true }),
    telemetry,
  });
  try {
    const apiKeys = openApiKeys({ file: join(config.dataDir, API_KEYS_FILE), clock });
    const edge = await createEdge({
      ...config.edge,
      portSetting: 'WRIT_EDGE_PORT',
      routes: forPeople,
      gate: publicGate({
        apiKeys,
        oidc: config.oidc && createOidc(config.oidc, clock),
        rateLimit: tenantRateLimit(config.tenantRate, clock),
      }),
      telemetry,
    });
    return { internal, edge };
  } catch (error) {
    await internal.close(0);
    throw error;
  }
}
