import { join } from 'node:path';
import {
  API_KEYS_FILE,
  assertRows,
  createOidc,
  internalGate,
  openApiKeys,
  publicGate,
} from '@writ/identity';
import { createEdge, createRpcServer, type RpcServer, TlsFiles } from '@writ/rpc';
import type { ServiceParts } from '@writ/service';
import type { SupervisorContext } from '../context.ts';
import { createTenantRate } from '../store/tenant-rate.ts';
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
 * @throws UnavailableError PORT_IN_USE naming the setting; InternalError CALLER_RULE_MISSING
 */
export async function openDoors(
  context: SupervisorContext,
  { tls, cleartext, loopback }: Pick<ServiceParts, 'tls' | 'cleartext' | 'loopback'>,
): Promise<Doors> {
  const { config, telemetry, verifier, clock } = context;
  const forServices = internalRoutes(context);
  const forPeople = publicRoutes(context);
  assertRows([...forServices, ...forPeople]);
  const internal = await createRpcServer({
    host: config.host,
    port: config.port,
    portSetting: 'WRIT_SUPERVISOR_PORT',
    tls: tls?.server,
    cleartext,
    loopback,
    routes: forServices,
    gate: internalGate({
      service: 'supervisor',
      verifier,
      enforceSlotGrants: true,
      trustDomain: tls?.trustDomain,
    }),
    telemetry,
  });
  const { edgeTls } = config;
  let edgeFiles: TlsFiles | undefined;
  try {
    const { log, metrics } = telemetry;
    if (edgeTls !== undefined) edgeFiles = TlsFiles.open({ ...edgeTls, log, metrics, use: 'edge' });
    const apiKeys = openApiKeys({ file: join(config.dataDir, API_KEYS_FILE), clock });
    const edge = await createEdge({
      ...config.edge,
      portSetting: 'WRIT_EDGE_PORT',
      tls: edgeFiles && { files: edgeFiles, clientCertificates: 'none' },
      routes: forPeople,
      gate: publicGate({
        apiKeys,
        oidc: config.oidc && createOidc(config.oidc, clock),
        rateLimit: createTenantRate(context.store, config.tenantRate, clock),
      }),
      telemetry,
    });
    const close = async (graceMs?: number): Promise<void> => {
      await edge.close(graceMs);
      edgeFiles?.close();
    };
    return { internal, edge: { ...edge, close } };
  } catch (error) {
    edgeFiles?.close();
    await internal.close(0);
    throw error;
  }
}
