import {
  Health,
  HealthCheckResponse_ServingStatus as ServingStatus,
} from '@writ/contracts/grpc/health/v1/health_pb';
import { createRpcClient } from '@writ/rpc';
import type { GatewayUnderTest } from './gateway-under-test.ts';

/**
 * Returns whether a service of the gateway is SERVING; an empty name selects the whole server.
 * @throws WritError when the gateway does not respond or the service does not exist
 */
export async function isServing(gateway: GatewayUnderTest, service: string): Promise<boolean> {
  const client = createRpcClient(Health, {
    ...gateway.as('supervisor'),
    timeoutMs: 3_000,
    // Connects as other calls do, so that they succeed once this check reports SERVING.
    health: 'responding',
  });
  try {
    const { status } = await client.check({ service });
    return status === ServingStatus.SERVING;
  } finally {
    client.close();
  }
}
