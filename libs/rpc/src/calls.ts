import { OverloadedError, UnavailableError, type WritError } from '@writ/kernel';
import type { Telemetry } from '@writ/telemetry';
import type { Gate } from './caller.ts';
import type { IncomingCall } from './incoming-call.ts';
import type { RpcLimits } from './limits.ts';
import type { ServedMethod } from './served-service.ts';
import { type CallHost, ServerCall } from './server-call.ts';

/** How long a forced end may take to reach the clients, ms. */
const FORCED_END_MS = 1_000;

interface Options {
  readonly gate: Gate;
  readonly telemetry: Telemetry;
  readonly limits: Required<RpcLimits>;
}

/** All calls under way on one server: their number is limited, and a drain waits for them. */
export class Calls implements CallHost {
  readonly gate: Gate;
  readonly telemetry: Telemetry;
  readonly maxUnaryMs: number;
  readonly #maxCalls: number;
  readonly #maxOpenCalls: number;
  readonly #underWay = new Set<ServerCall>();
  /** Of those under way, the application's own. */
  #busy = 0;
  #isDraining = false;
  #noticeIdle: (() => void) | undefined;

  constructor({ gate, telemetry, limits }: Options) {
    this.gate = gate;
    this.telemetry = telemetry;
    this.maxUnaryMs = limits.maxUnaryMs;
    this.#maxCalls = limits.maxConcurrentCalls;
    this.#maxOpenCalls = limits.maxOpenCalls;
  }

  /** Begins a call; whether it may go on says its `admit`. */
  open(served: ServedMethod, incoming: IncomingCall): ServerCall {
    const call = new ServerCall(this, served, incoming);
    this.#underWay.add(call);
    if (!served.open) this.#busy += 1;
    return call;
  }

  refusal({ served }: ServerCall): WritError | undefined {
    if (served.open) {
      // Anybody may make them, so they must not fill the server, nor the room of other calls.
      const count = this.#underWay.size - this.#busy;
      return count > this.#maxOpenCalls ? tooMany(this.#maxOpenCalls) : undefined;
    }
    if (this.#isDraining) return draining();
    return this.#busy > this.#maxCalls ? tooMany(this.#maxCalls) : undefined;
  }

  ended(call: ServerCall): void {
    this.#underWay.delete(call);
    if (!call.served.open) this.#busy -= 1;
    if (this.#busy === 0) this.#noticeIdle?.();
  }

  /**
   * Admits nothing more, ends endless streams at once, gives the other calls `graceMs` to finish and
   * ends what is left with UNAVAILABLE. Always resolves.
   */
  async drain(graceMs: number): Promise<void> {
    this.#isDraining = true;
    this.#abort(({ endless }) => endless);
    await this.#idle(graceMs);
    this.#abort(() => true);
    await this.#idle(FORCED_END_MS);
  }

  #abort(which: (served: ServedMethod) => boolean): void {
    for (const call of [...this.#underWay]) if (which(call.served)) call.abort(draining());
  }

  /** Resolves when no call of the application is under way, or after `limitMs`. */
  async #idle(limitMs: number): Promise<void> {
    if (this.#busy === 0) return;
    await new Promise<void>((resolve) => {
      const timer = setTimeout(resolve, limitMs);
      this.#noticeIdle = () => {
        clearTimeout(timer);
        resolve();
      };
    });
    this.#noticeIdle = undefined;
  }
}

function tooMany(limit: number): WritError {
  return new OverloadedError(
    'TOO_MANY_CALLS',
    `The server has ${limit} calls under way, which is its limit; call again later.`,
    { limit: String(limit) },
  );
}

function draining(): WritError {
  return new UnavailableError(
    'DRAINING',
    'The server is draining: it stops, or is being replaced; call again.',
  );
}
