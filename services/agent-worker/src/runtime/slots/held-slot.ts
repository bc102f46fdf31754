import type { SlotAnswer, SlotGrant, SlotRenewal } from '../../domain/agent/slot.ts';
import type { Credentials } from '../credentials.ts';
import type { LeaseSession } from '../leases/lease-session.ts';
import { AlreadyEnded, PeerRefusal, Preempted, Stopped, Unwinding } from '../unwinding.ts';

/** Time before the expiry of a grant from which the grant is no longer used, in milliseconds. */
const MARGIN_MS = 250;
/** Maximum delay of setTimeout. */
const MAX_TIMER_MS = 2 ** 31 - 1;

/** Dependencies of {@link HeldSlot}. */
export interface HeldSlotParts {
  readonly session: LeaseSession;
  readonly credentials: Pick<Credentials, 'freshToken' | 'renew'>;
  /** Requests a renewal before the next round. */
  readonly ask: () => void;
}

/**
 * The slot of an agent that this process has leased. A lost slot blocks the agent's next operation, and the
 * agent acts only under a current grant (SB-4).
 */
export class HeldSlot {
  readonly #parts: HeldSlotParts;
  readonly #waiting = new Set<() => void>();
  #isRequested = false;
  /** The grant and its expiry on the monotonic clock. */
  #grant: { readonly token: string; readonly endsAt: number } | undefined;
  /** Number of tokens that spawn-budget has refused in a row. */
  #tokenRefusals = 0;

  constructor(parts: HeldSlotParts) {
    this.#parts = parts;
    this.#hold(parts.session.slotGrant);
  }

  /** The lease of the agent. */
  get lease() {
    return this.#parts.session.lease;
  }

  /** The grant, unless it is about to expire. */
  get current(): string | undefined {
    const { token, endsAt = 0 } = this.#grant ?? {};
    return endsAt - MARGIN_MS > this.#parts.session.meta.clock.monotonicMs() ? token : undefined;
  }

  /**
   * Returns a current grant, and waits for one while spawn-budget is unreachable.
   * @throws Preempted when the slot is lost; AlreadyEnded when the slot was released; the errors of the session's check
   */
  async grant(): Promise<string> {
    this.#parts.session.check();
    if (this.current !== undefined) return this.current;
    if (!this.#isRequested) this.ask();
    return await this.#fresh();
  }

  /**
   * Returns a new grant, even if the current one has not expired.
   * @throws the errors of {@link grant}
   */
  async renewed(): Promise<string> {
    this.#grant = undefined;
    this.ask();
    return await this.#fresh();
  }

  /** Requests a renewal. */
  ask(): void {
    this.#isRequested = true;
    this.#parts.ask();
  }

  async #fresh(): Promise<string> {
    for (;;) {
      await this.#nextRenewal();
      this.#parts.session.check();
      // Returned without an expiry check: with a fast clock, every grant would seem expired.
      if (this.#grant !== undefined) return this.#grant.token;
    }
  }

  /** Returns the renewal request; undefined while the token is being renewed. */
  renewal(): SlotRenewal | undefined {
    const agentToken = this.#parts.credentials.freshToken('spawnBudget');
    if (agentToken !== undefined) return { agentToken, epoch: this.lease.epoch, intent: 'run' };
    this.#renewToken();
    return undefined;
  }

  /** Processes the result of a renewal. */
  answered(answer: SlotAnswer): void {
    this.#isRequested = false;
    if (answer.refusal !== undefined) this.#refused(answer.refusal);
    else this.#update(answer);
    this.#wakeWaiters();
  }

  #update({ state, grant, grantExpiresAt }: SlotAnswer & { readonly state: string }): void {
    const { session } = this.#parts;
    this.#tokenRefusals = 0;
    this.#hold(grant === '' ? undefined : { token: grant, expiresAt: grantExpiresAt });
    switch (state) {
      case 'paused':
      case 'waiting':
        session.block(
          new Preempted(`The slot of ${this.lease.instance} is ${state}.`, state === 'paused'),
        );
        break;
      case 'released':
        session.block(new AlreadyEnded(undefined));
        break;
      default:
        session.block(undefined);
    }
  }

  /**
   * Stores a grant with its remaining lifetime on the monotonic clock, which clock corrections do not affect (BD-3).
   */
  #hold(grant: SlotGrant | undefined): void {
    const { clock } = this.#parts.session.meta;
    const leftMs = (grant?.expiresAt ?? 0) - clock.now().getTime();
    this.#grant = grant && { token: grant.token, endsAt: clock.monotonicMs() + leftMs };
  }

  #refused(refusal: string): void {
    const { session } = this.#parts;
    this.#grant = undefined;
    if (refusal === 'STALE_EPOCH') session.interrupt('lost', true);
    else if (refusal === 'TOKEN_EXPIRED' || refusal === 'TOKEN_INVALID') {
      // When spawn-budget refuses the new token as well, the request is repeated in the next round.
      this.#renewToken(this.#tokenRefusals === 0);
      this.#tokenRefusals += 1;
    } else this.#stop(`error:${refusal.toLowerCase()}`, `spawn-budget refused a slot: ${refusal}.`);
  }

  #renewToken(isUrgent = true): void {
    const { session, credentials } = this.#parts;
    const ask = () => {
      if (isUrgent) this.ask();
    };
    credentials.renew().then(ask, (error: unknown) => {
      if (error instanceof PeerRefusal) this.#stop(error.stopReason, error.message);
      else if (error instanceof Unwinding) session.block(error);
      // Other errors are retried in the next round.
      this.#wakeWaiters();
    });
  }

  #stop(stopReason: string, detail: string): void {
    this.#parts.session.block(new Stopped({ stopReason, phase: 'worker', detail }));
  }

  /** Resolves at the next renewal result, at the deadline, or when the session is interrupted. */
  async #nextRenewal(): Promise<void> {
    const { session } = this.#parts;
    const { promise, resolve } = Promise.withResolvers<void>();
    const left = session.meta.remainingMs();
    const timer =
      left === undefined ? undefined : setTimeout(resolve, Math.min(left, MAX_TIMER_MS));
    const wake = () => resolve();
    session.interrupted.addEventListener('abort', wake, { once: true });
    if (session.interrupted.aborted) resolve();
    this.#waiting.add(wake);
    await promise;
    this.#waiting.delete(wake);
    session.interrupted.removeEventListener('abort', wake);
    clearTimeout(timer);
  }

  #wakeWaiters(): void {
    for (const wake of this.#waiting) wake();
  }
}
