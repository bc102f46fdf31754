/** The OpenTelemetry RPC conventions, one place for both sides (SYS-1). */
export const ATTR_RPC_SYSTEM = 'rpc.system';
export const ATTR_RPC_SERVICE = 'rpc.service';
export const ATTR_RPC_METHOD = 'rpc.method';
export const ATTR_RPC_GRPC_STATUS_CODE = 'rpc.grpc.status_code';
export const ATTR_SERVER_ADDRESS = 'server.address';
export const ATTR_SERVER_PORT = 'server.port';
