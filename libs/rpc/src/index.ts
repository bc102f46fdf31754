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
export type {
  CallContext,
  Handler,
  Handlers,
  Route,
  RouteMethod,
  StreamHandler,
  UnaryHandler,
} from './calls/handler.ts';
export { endless, partialRoute, reserved, route } from './calls/handler.ts';
export type { CallOptions } from './client/call-options.ts';
export type { ClosableRpcClient, RpcClient, RpcClientOptions } from './client/client.ts';
export { createRpcClient } from './client/client.ts';
export type { RetryOptions } from './client/retry.ts';
export type { CalledPeer } from './errors/error-details.ts';
export type { GrpcStatus } from './errors/grpc-errors.ts';
export { fromGrpcError, toGrpcStatus } from './errors/grpc-errors.ts';
export type { FieldViolation } from './errors/invalid-fields-error.ts';
export { InvalidFieldsError } from './errors/invalid-fields-error.ts';
export { UnsentCallError } from './errors/unsent-call.ts';
export type { RpcLimits } from './limits.ts';
export { Loopback } from './loopback/loopback.ts';
export { type MessageErrors, messageOf, plainOf } from './messages/plain-message.ts';
export type { RpcServer, RpcServerOptions } from './server/rpc-server.ts';
export { createRpcServer } from './server/server.ts';
export type { ChannelTls, ExpectedPeer } from './tls/channel-tls.ts';
export { channelTls } from './tls/channel-tls.ts';
export { isLoopback } from './tls/private-port.ts';
export type { ServerTls } from './tls/tls-acceptor.ts';
export type { TlsFilesOptions } from './tls/tls-files.ts';
export { TlsFiles } from './tls/tls-files.ts';
export type { TlsFileNames, TlsMaterial } from './tls/tls-material.ts';
