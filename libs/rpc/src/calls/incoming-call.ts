/** The part of a call that a transport knows before it reads the content. */
export interface IncomingCall {
  /** `grpc`, `connect_rpc` or `http`, for the span. */
  readonly rpcSystem: string;
  /** Time left until the client's deadline, ms. */
  readonly timeoutMs: number | undefined;
  /** The URI names of the client certificate; undefined without one. */
  readonly peerUris?: readonly string[] | undefined;
  /** Called once the gate has admitted a caller that is not anonymous. */
  readonly onAuthenticated?: () => void;
  header(name: string): string | undefined;
}
