/** The OpenTelemetry RPC conventions, one place for both sides (SYS-1). */

/** `grpc` or `connect_rpc`. */
export const ATTR_RPC_SYSTEM = 'rpc.system';
/** Full name of the service. */
export const ATTR_RPC_SERVICE = 'rpc.service';
/** Name of the method, without the service. */
export const ATTR_RPC_METHOD = 'rpc.method';
/** Number of the status; 0 when the call went well. */
export const ATTR_RPC_GRPC_STATUS_CODE = 'rpc.grpc.status_code';
/** `host:port` that was called. */
export const ATTR_SERVER_ADDRESS = 'server.address';
/** Name of the status, such as `OK`; of metrics. */
export const ATTR_RPC_RESPONSE_STATUS_CODE = 'rpc.response.status_code';
