import type { SlotAnswer, SlotRenewal } from '../../domain/agent/slot.ts';
import type { Credentials } from '../credentials.ts';
import type { Session } from '../session.ts';
import { AlreadyEnded, PeerRefusal, Preempted, Stopped, Unwinding } from '../unwinding.ts';

/** How long before its end a grant is not used any more: it must arrive. */
const MARGIN_MS = 250;
/** Longest time that a timer can be set for. */
const MAX_TIMER_MS = 2 ** 31 - 1;

/** What a {@link HeldSlot} belongs to. */
export interface HeldSlotParts {
  readonly session: Session;
  readonly credentials: Pick<Credentials, 'freshToken' | 'renew'>;
  /** Has the slot renewed with the next call instead of the next round. */
  readonly ask: () => void;
}

/**
 * The slot of an agent that is leased here: its current grant, and what follows when it is lost. The
 * agent learns of a pause before its next operation, and acts under no grant but a current one (SB-4).
 */
export class HeldSlot {
  readonly #parts: HeldSlotParts;
  readonly #waiting = new Set<() => void>();
  #isRequested = false;
  #grant: { readonly token: string; readonly expiresAt: number } | undefined;

  constructor(parts: HeldSlotParts) {
    this.#parts = parts;
  }

  /** The lease that it belongs to. */
  get lease() {
    return this.#parts.session.lease;
  }

  /** The grant, while it works. */
  get current(): string | undefined {
    const now = this.#parts.session.meta.clock.now().getTime();
    const { token, expiresAt = 0 } = this.#grant ?? {};
    return expiresAt - MARGIN_MS > now ? token : undefined;
  }

  /**
   * A grant that works, waited for if need be: while spawn-budget is out of reach, nothing is done.
   * @throws Preempted when the slot is lost; AlreadyEnded when it was released; and what the
   *   session's check throws
   */
  async grant(): Promise<string> {
    this.#parts.session.check();
    if (this.current !== undefined) return this.current;
    if (!this.#isRequested) this.ask();
    return await this.#fresh();
  }

  /**
   * A grant that is fresh, whatever the present one is worth.
   * @throws as {@link grant}
   */
  async renewed(): Promise<string> {
    this.#grant = undefined;
    this.ask();
    return await this.#fresh();
  }

  /** Has it renewed at once. */
  ask(): void {
    this.#isRequested = true;
    this.#parts.ask();
  }

  async #fresh(): Promise<string> {
    for (;;) {
      await this.#nextRenewal();
      this.#parts.session.check();
      // Taken as it is: a clock that runs ahead must not make every grant look spent.
      if (this.#grant !== undefined) return this.#grant.token;
    }
  }

  /** What the next renewal asks for it; undefined while its token is being renewed. */
  renewal(): SlotRenewal | undefined {
    const agentToken = this.#parts.credentials.freshToken('spawnBudget');
    if (agentToken !== undefined) return { agentToken, epoch: this.lease.epoch, intent: 'run' };
    this.#renewToken();
    return undefined;
  }

  /** Takes what a renewal came to. */
  answered(answer: SlotAnswer): void {
    this.#isRequested = false;
    if (answer.refusal !== undefined) this.#refused(answer.refusal);
    else this.#update(answer);
    this.#tell();
  }

  #update({ state, grant, grantExpiresAt }: SlotAnswer & { readonly state: string }): void {
    const { session } = this.#parts;
    this.#grant = grant === '' ? undefined : { token: grant, expiresAt: grantExpiresAt };
    switch (state) {
      case 'paused':
      case 'waiting':
        session.block(new Preempted(`The slot of ${this.lease.instance} is ${state}.`));
        break;
      case 'released':
        session.block(new AlreadyEnded(undefined));
        break;
      default:
        session.block(undefined);
    }
  }

  #refused(refusal: string): void {
    const { session } = this.#parts;
    this.#grant = undefined;
    if (refusal === 'STALE_EPOCH') session.interrupt('lost', true);
    else if (refusal === 'TOKEN_EXPIRED') this.#renewToken();
    else this.#stop(`error:${refusal.toLowerCase()}`, `spawn-budget refused a slot: ${refusal}.`);
  }

  #renewToken(): void {
    const { session, credentials } = this.#parts;
    const ask = () => this.ask();
    credentials.renew().then(ask, (error: unknown) => {
      if (error instanceof PeerRefusal) this.#stop(error.stopReason, error.message);
      else if (error instanceof Unwinding) session.block(error);
      // Whatever else it was, the next round tries again.
      this.#tell();
    });
  }

  #stop(stopReason: string, detail: string): void {
    this.#parts.session.block(new Stopped({ stopReason, phase: 'worker', detail }));
  }

  /** Resolves at the next answer, and when the agent may wait no longer. */
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

  #tell(): void {
    for (const wake of this.#waiting) wake();
  }
}
