import {
  Health,
  HealthCheckResponse_ServingStatus as ServingStatus,
} from '@writ/contracts/grpc/health/v1/health_pb';
import { createRpcClient } from '@writ/rpc';
import type { GatewayUnderTest } from './gateway-under-test.ts';

/**
 * Whether a gateway says that it serves; the empty name means all of it.
 * @throws WritError when it does not answer, or knows no service of that name
 */
export async function isServing(gateway: GatewayUnderTest, service: string): Promise<boolean> {
  const client = createRpcClient(Health, {
    ...gateway.as('supervisor'),
    timeoutMs: 3_000,
    // Over the same connection as all other calls, so that those find it once this does.
    health: 'responding',
  });
  try {
    const { status } = await client.check({ service });
    return status === ServingStatus.SERVING;
  } finally {
    client.close();
  }
}
