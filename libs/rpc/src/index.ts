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
  CallOptions,
  ClosableRpcClient,
  RetryOptions,
  RpcClient,
  RpcClientOptions,
} from './client.ts';
export { createRpcClient } from './client.ts';
export type { EdgeOptions, WebRequest, WebResponse } from './edge.ts';
export { createEdge } from './edge.ts';
export type {
  CallContext,
  Handler,
  Handlers,
  Route,
  RouteMethod,
  StreamHandler,
  UnaryHandler,
} from './handler.ts';
export { route, unimplemented } from './handler.ts';
export type { RpcLimits, RpcServer, RpcServerOptions } from './rpc-server.ts';
export { createRpcServer } from './server.ts';
