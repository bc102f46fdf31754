/** What a transport knows of a call before its content. */
export interface IncomingCall {
  /** `grpc` or `connect_rpc`, for the span. */
  readonly rpcSystem: string;
  /** What is left of the client's own time limit, ms. */
  readonly timeoutMs: number | undefined;
  /** The URIs by which the client's certificate names it; undefined when it showed none. */
  readonly peerUris?: readonly string[] | undefined;
  header(name: string): string | undefined;
}
