import { NotImplementedError } from '@writ/kernel';
import type { RpcServer, RpcServerOptions } from './rpc-server.ts';

/**
 * Serves `routes` over gRPC, with health and reflection (SYS-2).
 * @throws UnavailableError PORT_IN_USE when the port is taken
 */
export async function createRpcServer(_options: RpcServerOptions): Promise<RpcServer> {
  throw new NotImplementedError('NOT_IMPLEMENTED_YET', 'The server is not there yet.');
}
