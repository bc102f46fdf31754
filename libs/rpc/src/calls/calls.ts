import { IdleWait, OverloadedError, UnavailableError, type WritError } from '@writ/kernel';
import type { Telemetry } from '@writ/telemetry';
import type { Caller, Gate, Person } from '../caller.ts';
import type { RpcLimits } from '../limits.ts';
import type { IncomingCall } from './incoming-call.ts';
import { PacedQueue } from './paced-queue.ts';
import type { ServedMethod } from './served-service.ts';
import { type CallHost, ServerCall } from './server-call.ts';

/** Time for aborted calls to send their status, ms. */
export const FORCED_END_MS = 1_000;

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
  readonly disconnections = new PacedQueue();
  readonly #limits: Required<RpcLimits>;
  readonly #inFlight = new Set<ServerCall>();
  /** Calls in flight of the application's services, excluding health and reflection. */
  #busy = 0;
  /** Calls in flight of reserved methods, which `#busy` includes. */
  #reserved = 0;
  /** Calls in flight of people, by tenant and by person, excluding reserved methods. */
  readonly #byLimitKey = new Map<string, number>();
  #isDraining = false;
  readonly #idleWait = new IdleWait();

  constructor({ gate, telemetry, limits }: Options) {
    this.gate = gate;
    this.telemetry = telemetry;
    this.maxUnaryMs = limits.maxUnaryMs;
    this.#limits = limits;
  }

  /** Registers a new call; its `admit` decides whether it may proceed. */
  open(served: ServedMethod, incoming: IncomingCall): ServerCall {
    const call = new ServerCall(this, served, incoming);
    this.#inFlight.add(call);
    if (!served.open) this.#busy += 1;
    if (served.reserved) this.#reserved += 1;
    return call;
  }

  refusal({ served }: ServerCall): WritError | undefined {
    const { maxConcurrentCalls, maxReservedCalls, maxOpenCalls } = this.#limits;
    if (served.open) {
      // Health and reflection need no credentials, so they have a separate limit. Streams may use only 90% of it, so
      // that unary health checks still succeed.
      const isStream = served.implementation.kind !== 'unary';
      const limit = isStream ? Math.ceil(maxOpenCalls * 0.9) : maxOpenCalls;
      return tooMany(this.#inFlight.size - this.#busy, limit, 'The server');
    }
    if (this.#isDraining) return draining();
    if (served.reserved) return tooMany(this.#reserved, maxReservedCalls, 'The server');
    return tooMany(this.#busy - this.#reserved, maxConcurrentCalls, 'The server');
  }

  /**
   * Counts an admitted call of a person; returns the error when the person or the tenant has too many calls in flight.
   */
  callerRefusal({ served }: ServerCall, { person }: Caller): WritError | undefined {
    if (person === undefined || served.reserved) return undefined;
    const { maxCallsPerTenant, maxCallsPerPerson } = this.#limits;
    const [tenant, subject] = limitKeysOf(person);
    const [ofTenant, ofPerson] = [this.#count(tenant), this.#count(subject)];
    return (
      tooMany(ofPerson, maxCallsPerPerson, 'The caller') ??
      tooMany(ofTenant, maxCallsPerTenant, 'The tenant')
    );
  }

  #count(key: string): number {
    const count = (this.#byLimitKey.get(key) ?? 0) + 1;
    this.#byLimitKey.set(key, count);
    return count;
  }

  ended(call: ServerCall, { person }: Caller): void {
    this.#inFlight.delete(call);
    if (!call.served.open) this.#busy -= 1;
    if (call.served.reserved) this.#reserved -= 1;
    else if (person !== undefined) for (const key of limitKeysOf(person)) this.#release(key);
    if (this.#busy === 0) this.#idleWait.notify();
  }

  #release(key: string): void {
    const count = (this.#byLimitKey.get(key) ?? 0) - 1;
    if (count > 0) this.#byLimitKey.set(key, count);
    else this.#byLimitKey.delete(key);
  }

  /** Rejects new calls with DRAINING, except health and reflection. */
  rejectNew(): void {
    this.#isDraining = true;
  }

  /**
   * Rejects new calls like `rejectNew`, aborts endless streams and all calls of health and reflection at once, waits up
   * to `graceMs` for the other calls and then aborts the rest with UNAVAILABLE. The returned promise never rejects.
   */
  async drain(graceMs: number): Promise<void> {
    this.rejectNew();
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
    if (this.#busy > 0) await this.#idleWait.wait(limitMs);
  }
}

/**
 * Returns the keys under which the calls of a tenant and of a person are counted. The keys are JSON, which makes them
 * unambiguous.
 */
function limitKeysOf({ tenant, subject }: Person): readonly [string, string] {
  return [JSON.stringify([tenant]), JSON.stringify([tenant, subject])];
}

function tooMany(count: number, limit: number, who: string): WritError | undefined {
  if (count <= limit) return undefined;
  return new OverloadedError(
    'TOO_MANY_CALLS',
    `${who} has reached its limit of ${limit} calls in flight; retry later.`,
    { limit: String(limit) },
  );
}

function draining(): WritError {
  return new UnavailableError('DRAINING', 'The server is shutting down; retry.');
}
