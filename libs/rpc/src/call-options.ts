/** How one call is made. */
export interface CallOptions {
  /** Cancels the call, also on the server (SUP-6). */
  readonly signal?: AbortSignal | undefined;
  /** Longest the call may take, ms. Default: the client's own for unary calls, none for streams. */
  readonly timeoutMs?: number | undefined;
  readonly agentToken?: string | undefined;
  readonly slotGrant?: string | undefined;
  /** Epoch of the worker's lease (RT-2). */
  readonly epoch?: bigint | undefined;
  readonly headers?: Readonly<Record<string, string>> | undefined;
  /**
   * The call is idempotent: make it again on UNAVAILABLE, within its deadline. Unary only. Default:
   * what the contract says of the method (`idempotency_level`).
   */
  readonly retry?: boolean | undefined;
  /** With `retry`: make it again on ABORTED too. */
  readonly retryAborted?: boolean | undefined;
}
