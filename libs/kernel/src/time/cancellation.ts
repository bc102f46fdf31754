import { CancellationError } from '../errors/errors.ts';

/**
 * A cooperative cancellation token (SUP-6). The owner cancels it; the work checks it at safe points or waits
 * for it. Cancelling a token also cancels its children, but not its parent.
 */
export class CancellationToken {
  #reason: string | undefined;
  #controller: AbortController | undefined;
  readonly #children = new Set<CancellationToken>();
  #stopFollowing: (() => void) | undefined;

  /** Whether it was cancelled. */
  get isCancelled(): boolean {
    return this.#reason !== undefined;
  }

  /** The first reason; undefined while not cancelled. */
  get reason(): string | undefined {
    return this.#reason;
  }

  /** Cancels this token and its descendants. Idempotent; the first reason is kept (SUP-6). */
  cancel(reason = 'cancelled'): void {
    const pending: CancellationToken[] = [this];
    for (let token = pending.pop(); token !== undefined; token = pending.pop()) {
      if (token.#reason !== undefined) continue;
      token.#reason = reason;
      token.detach();
      token.#controller?.abort(new CancellationError(reason));
      pending.push(...token.#children);
      token.#children.clear();
    }
  }

  /**
   * Throws when cancelled.
   * @throws CancellationError with the first reason
   */
  check(): void {
    if (this.#reason !== undefined) throw new CancellationError(this.#reason);
  }

  /** Resolves with the reason once cancelled, immediately if it already is. */
  wait(): Promise<string> {
    if (this.#reason !== undefined) return Promise.resolve(this.#reason);
    const signal = this.toAbortSignal();
    return new Promise((resolve) => {
      signal.addEventListener('abort', () => resolve(this.#reason ?? 'cancelled'), { once: true });
    });
  }

  /** Creates a token that is cancelled with this one and can also be cancelled alone. */
  child(): CancellationToken {
    const child = new CancellationToken();
    if (this.#reason !== undefined) {
      child.cancel(this.#reason);
      return child;
    }
    this.#children.add(child);
    child.#stopFollowing = () => this.#children.delete(child);
    return child;
  }

  /** Detaches this token from its parent or signal, so that a long-lived parent does not keep the token in memory. */
  detach(): void {
    this.#stopFollowing?.();
    this.#stopFollowing = undefined;
  }

  /** A signal that aborts with a CancellationError when this token is cancelled. */
  toAbortSignal(): AbortSignal {
    if (this.#controller === undefined) {
      this.#controller = new AbortController();
      if (this.#reason !== undefined) this.#controller.abort(new CancellationError(this.#reason));
    }
    return this.#controller.signal;
  }

  /** Creates a token that is cancelled when `signal` aborts, with the text of its reason. */
  static fromAbortSignal(signal: AbortSignal): CancellationToken {
    const token = new CancellationToken();
    const follow = (): void => token.cancel(describe(signal.reason));
    if (signal.aborted) {
      follow();
      return token;
    }
    signal.addEventListener('abort', follow, { once: true });
    token.#stopFollowing = () => signal.removeEventListener('abort', follow);
    return token;
  }
}

function describe(reason: unknown): string {
  if (reason instanceof CancellationError) return reason.cancelReason;
  if (reason instanceof Error) return reason.message;
  return typeof reason === 'string' ? reason : 'cancelled';
}
