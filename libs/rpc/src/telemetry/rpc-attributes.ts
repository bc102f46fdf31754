/** Attribute names of the OpenTelemetry RPC conventions (SYS-1). */

/** `grpc`, `connect_rpc` or `http` (event streams). */
export const ATTR_RPC_SYSTEM = 'rpc.system';
/** Full name of the service. */
export const ATTR_RPC_SERVICE = 'rpc.service';
/** Name of the method, without the service. */
export const ATTR_RPC_METHOD = 'rpc.method';
/** Status code; 0 for OK. */
export const ATTR_RPC_GRPC_STATUS_CODE = 'rpc.grpc.status_code';
/** `host:port` of the called service, or the list of its replicas. */
export const ATTR_SERVER_ADDRESS = 'server.address';
/** Status name, such as `OK`; a metric label. */
export const ATTR_RPC_RESPONSE_STATUS_CODE = 'rpc.response.status_code';
