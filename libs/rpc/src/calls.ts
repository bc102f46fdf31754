import { OverloadedError, UnavailableError, type WritError } from '@writ/kernel';
import type { Telemetry } from '@writ/telemetry';
import type { Gate } from './caller.ts';
import type { IncomingCall } from './incoming-call.ts';
import type { RpcLimits } from './limits.ts';
import type { ServedMethod } from './served-service.ts';
import { type CallHost, ServerCall } from './server-call.ts';

/** Time for aborted calls to send their status, ms. */
const FORCED_END_MS = 1_000;

interface Options {
  readonly gate: Gate;
  readonly telemetry: Telemetry;
  readonly limits: Required<RpcLimits>;
}

/** The calls in flight on one server. Limits their number; a drain waits for them. */
export class Calls implements CallHost {
  readonly gate: Gate;
  readonly telemetry: Telemetry;
  readonly maxUnaryMs: number;
  readonly #maxCalls: number;
  readonly #maxOpenCalls: number;
  readonly #inFlight = new Set<ServerCall>();
  /** Calls in flight of the application's services, without health and reflection. */
  #busy = 0;
  #isDraining = false;
  #onIdle: (() => void) | undefined;

  constructor({ gate, telemetry, limits }: Options) {
    this.gate = gate;
    this.telemetry = telemetry;
    this.maxUnaryMs = limits.maxUnaryMs;
    this.#maxCalls = limits.maxConcurrentCalls;
    this.#maxOpenCalls = limits.maxOpenCalls;
  }

  /** Registers a new call; its `admit` decides whether it may proceed. */
  open(served: ServedMethod, incoming: IncomingCall): ServerCall {
    const call = new ServerCall(this, served, incoming);
    this.#inFlight.add(call);
    if (!served.open) this.#busy += 1;
    return call;
  }

  refusal({ served }: ServerCall): WritError | undefined {
    if (served.open) {
      // They need no credentials, so they have a limit of their own.
      const count = this.#inFlight.size - this.#busy;
      return count > this.#maxOpenCalls ? tooMany(this.#maxOpenCalls) : undefined;
    }
    if (this.#isDraining) return draining();
    return this.#busy > this.#maxCalls ? tooMany(this.#maxCalls) : undefined;
  }

  ended(call: ServerCall): void {
    this.#inFlight.delete(call);
    if (!call.served.open) this.#busy -= 1;
    if (this.#busy === 0) this.#onIdle?.();
  }

  /**
   * Rejects new calls, aborts endless streams at once, waits up to `graceMs` for the other calls and
   * then aborts the rest with UNAVAILABLE. Never rejects.
   */
  async drain(graceMs: number): Promise<void> {
    this.#isDraining = true;
    this.#abort(({ endless }) => endless);
    await this.#idle(graceMs);
    this.#abort(() => true);
    await this.#idle(FORCED_END_MS);
  }

  #abort(which: (served: ServedMethod) => boolean): void {
    for (const call of [...this.#inFlight]) if (which(call.served)) call.abort(draining());
  }

  /** Resolves when no call of the application is in flight, or after `limitMs`. */
  async #idle(limitMs: number): Promise<void> {
    if (this.#busy === 0) return;
    await new Promise<void>((resolve) => {
      const timer = setTimeout(resolve, limitMs);
      this.#onIdle = () => {
        clearTimeout(timer);
        resolve();
      };
    });
    this.#onIdle = undefined;
  }
}

function tooMany(limit: number): WritError {
  return new OverloadedError(
    'TOO_MANY_CALLS',
    `The server has reached its limit of ${limit} calls in flight; retry later.`,
    { limit: String(limit) },
  );
}

function draining(): WritError {
  return new UnavailableError('DRAINING', 'The server is shutting down; retry.');
}
