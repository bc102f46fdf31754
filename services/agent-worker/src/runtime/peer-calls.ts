import { setTimeout as delay } from 'node:timers/promises';
import { isWritError } from '@writ/kernel';
import type { CallOptions } from '@writ/rpc';
import type { TokenAudience } from '../domain/agent/credentials.ts';
import { reactTo } from '../domain/calls/reaction.ts';
import type { Credentials } from './credentials.ts';
import type { Session } from './session.ts';
import type { HeldSlot } from './slots/held-slot.ts';
import { AlreadyEnded, LeaseLost, Parked, PeerRefusal, Stopped } from './unwinding.ts';

/** How calls are bounded and repeated. Times are milliseconds. */
export interface CallSettings {
  /** Longest one call may take. */
  readonly callTimeoutMs: number;
  /** Upper bound of the first wait before a repeat; doubles up to `retryMaxMs`. */
  readonly retryInitialMs: number;
  readonly retryMaxMs: number;
}

/** How one kind of call is made. */
export interface CallTerms {
  /** Whose token it needs; left out when it needs none. */
  readonly audience?: TokenAudience;
  /** Only an agent that holds a slot may make it: without a current grant the call waits (SB-4). */
  readonly acts?: boolean;
  /** Instead of the setting. */
  readonly timeoutMs?: number;
  /** The call is made also when the run is out of time: it tells how the agent ended. */
  readonly afterDeadline?: boolean;
  /** Called when the peer says that the writ has expired. */
  readonly renewWrit?: () => Promise<void>;
}

/** A call may be refused for its tokens once after they were renewed; more often they are not it. */
const MAX_RENEWALS = 3;
/** How much sooner a call ends than its run. */
const BEFORE_DEADLINE_MS = 20;

/**
 * Calls peers for one agent: with its tokens, grant and epoch, within its run's time, and again with
 * back-off and full jitter for as long as a repeat may help. Every call is idempotent by its call_id,
 * so it is never lost and never made twice (RT-1, SUP-5).
 */
export class PeerCalls {
  readonly #session: Session;
  readonly #credentials: Credentials;
  readonly #slot: HeldSlot;
  readonly #settings: CallSettings;

  constructor(parts: {
    readonly session: Session;
    readonly credentials: Credentials;
    readonly slot: HeldSlot;
    readonly settings: CallSettings;
  }) {
    this.#session = parts.session;
    this.#credentials = parts.credentials;
    this.#slot = parts.slot;
    this.#settings = parts.settings;
  }

  /**
   * Makes a call until it is answered for good.
   * @throws PeerRefusal when the answer is no, whatever is repeated; Unwinding when the agent may not
   *   go on
   */
  async call<T>(terms: CallTerms, work: (options: CallOptions) => Promise<T>): Promise<T> {
    for (let failures = 0, renewals = 0; ; ) {
      this.#check(terms);
      try {
        return await work(await this.#options(terms));
      } catch (error) {
        if (!isWritError(error)) throw error;
        // An interruption looks like an error of the peer, since it aborts the call.
        this.#check(terms);
        const reaction = reactTo(error);
        switch (reaction.kind) {
          case 'retry':
            await this.#backOff(terms, failures);
            failures += 1;
            break;
          case 'refresh_tokens':
          case 'renew_writ':
            renewals += 1;
            if (renewals > MAX_RENEWALS) throw refusal(error);
            await this.#renew(reaction.kind, terms, error);
            break;
          case 'renew_slot':
            await this.#slot.renewed();
            // The two services may know of a pause at different times.
            await this.#backOff(terms, failures);
            failures += 1;
            break;
          case 'park':
            throw new Parked(error.message);
          case 'abandon':
            throw new LeaseLost(error.message);
          case 'ended':
            throw new AlreadyEnded(reaction.stopReason);
          case 'stop':
            throw new PeerRefusal(reaction.stopReason, error.message, { cause: error });
        }
      }
    }
  }

  #check({ afterDeadline = false }: CallTerms): void {
    if (afterDeadline) {
      this.#session.checkInterruption();
      return;
    }
    this.#session.check();
    const left = this.#session.meta.remainingMs();
    if (left === undefined || left > BEFORE_DEADLINE_MS) return;
    throw new Stopped({
      stopReason: 'deadline',
      phase: 'worker',
      detail: 'The run has no time left for another call.',
    });
  }

  async #options(terms: CallTerms): Promise<CallOptions> {
    const { audience, acts = false, timeoutMs, afterDeadline = false } = terms;
    const { lease, meta, signal } = this.#session;
    const agentToken = audience && (await this.#credentials.token(audience));
    const slotGrant = acts ? await this.#slot.grant() : this.#slot.current;
    const longest = timeoutMs ?? this.#settings.callTimeoutMs;
    const deadline = afterDeadline ? undefined : meta.remainingMs();
    const left = (deadline ?? Number.POSITIVE_INFINITY) - BEFORE_DEADLINE_MS;
    return {
      signal,
      timeoutMs: Math.max(1, Math.min(longest, Math.floor(left))),
      epoch: lease.epoch,
      ...(agentToken !== undefined && { agentToken }),
      ...(agentToken !== undefined && slotGrant !== undefined && { slotGrant }),
    };
  }

  async #renew(
    kind: 'refresh_tokens' | 'renew_writ',
    terms: CallTerms,
    error: Error,
  ): Promise<void> {
    // Asking for tokens is itself a call without a token, which fresh ones would not mend.
    const canRefresh = kind === 'refresh_tokens' && terms.audience !== undefined;
    if (canRefresh) await this.#credentials.renew();
    else if (kind === 'renew_writ' && terms.renewWrit !== undefined) await terms.renewWrit();
    else throw refusal(error);
  }

  async #backOff(terms: CallTerms, failures: number): Promise<void> {
    const { retryInitialMs, retryMaxMs } = this.#settings;
    const ceiling = Math.min(retryMaxMs, retryInitialMs * 2 ** Math.min(failures, 16));
    try {
      await delay(Math.random() * ceiling, undefined, { signal: this.#session.interrupted });
    } catch {
      this.#check(terms);
    }
  }
}

function refusal(error: Error): PeerRefusal {
  const reason = isWritError(error) ? error.reason.toLowerCase() : 'refused';
  return new PeerRefusal(`error:${reason}`, error.message, { cause: error });
}
