/** Options of one call. */
export interface CallOptions {
  /** Cancels the call, on the server too (SUP-6). */
  readonly signal?: AbortSignal | undefined;
  /** Timeout of the call, ms. Default: that of the client for unary calls, none for streams. */
  readonly timeoutMs?: number | undefined;
  readonly agentToken?: string | undefined;
  readonly slotGrant?: string | undefined;
  /** Epoch of the worker's lease (RT-2). */
  readonly epoch?: bigint | undefined;
  readonly headers?: Readonly<Record<string, string>> | undefined;
  /**
   * The call is idempotent: retry on UNAVAILABLE, within its deadline and `maxAttempts` of the client. Unary only.
   * Default: whether the method declares an `idempotency_level`; the contracts of Writ declare none, so their calls are
   * retried only with `retry: true`.
   */
  readonly retry?: boolean | undefined;
  /** With `retry`: retry on ABORTED too. */
  readonly retryAborted?: boolean | undefined;
}
