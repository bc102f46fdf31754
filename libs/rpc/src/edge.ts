import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Http2ServerRequest, Http2ServerResponse } from 'node:http2';
import { NotImplementedError } from '@writ/kernel';
import type { RpcServer, RpcServerOptions } from './rpc-server.ts';

/** A request over HTTP/1.1 or HTTP/2. */
export type WebRequest = IncomingMessage | Http2ServerRequest;
/** The response to a {@link WebRequest}. */
export type WebResponse = ServerResponse | Http2ServerResponse;

/** What the edge needs. */
export interface EdgeOptions extends RpcServerOptions {
  /** Answers what is no RPC, such as a console's files; returns false for what it does not know. */
  readonly web?: (request: WebRequest, response: WebResponse) => boolean;
  /** Origins whose browsers may call, such as `https://console.example`. Default none. */
  readonly allowedOrigins?: readonly string[];
}

/**
 * Serves `routes` on one cleartext port as gRPC, gRPC-Web and JSON over HTTP/2 and HTTP/1.1, with
 * health and reflection (SYS-2).
 * @throws UnavailableError PORT_IN_USE when the port is taken
 */
export async function createEdge(_options: EdgeOptions): Promise<RpcServer> {
  throw new NotImplementedError('NOT_IMPLEMENTED_YET', 'The edge is not there yet.');
}
