export type { CallOptions } from './call-options.ts';
export type {
  AgentIdentity,
  Caller,
  Gate,
  GateCall,
  Person,
  Role,
  ServiceIdentity,
  SlotGrant,
} from './caller.ts';
export { METADATA, requireAgent, requirePerson, requireService } from './caller.ts';
export type { ClosableRpcClient, RpcClient, RpcClientOptions } from './client.ts';
export { createRpcClient } from './client.ts';
export type { EdgeOptions } from './edge.ts';
export { createEdge } from './edge.ts';
export type { CalledPeer } from './error-details.ts';
export type { GrpcStatus } from './errors.ts';
export { fromConnectError, fromGrpcError, toConnectError, toGrpcStatus } from './errors.ts';
export type {
  CallContext,
  Handler,
  Handlers,
  Route,
  RouteMethod,
  StreamHandler,
  UnaryHandler,
} from './handler.ts';
export { endless, reserved, route, unimplemented } from './handler.ts';
export type { FieldViolation } from './invalid-fields-error.ts';
export { InvalidFieldsError } from './invalid-fields-error.ts';
export type { RpcLimits } from './limits.ts';
export { Loopback } from './loopback.ts';
export type { RetryOptions } from './retry.ts';
export type { RpcServer, RpcServerOptions } from './rpc-server.ts';
export { createRpcServer } from './server.ts';
export type { ChannelTls, ExpectedPeer } from './tls/channel-tls.ts';
export { channelTls } from './tls/channel-tls.ts';
export type { ServerTls } from './tls/tls-acceptor.ts';
export type { TlsFilesOptions } from './tls/tls-files.ts';
export { TlsFiles } from './tls/tls-files.ts';
export type { TlsFileNames, TlsMaterial } from './tls/tls-material.ts';
export type { WebHook, WebRequest, WebResponse } from './web.ts';
