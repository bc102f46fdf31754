import { setTimeout as delay } from 'node:timers/promises';
import { backoffMs, isWritError, omitUndefined } from '@writ/kernel';
import type { CallOptions } from '@writ/rpc';
import type { TokenAudience } from '../domain/agent/credentials.ts';
import { reactTo } from '../domain/calls/reaction.ts';
import type { Credentials } from './credentials.ts';
import type { LeaseSession } from './leases/lease-session.ts';
import type { HeldSlot } from './slots/held-slot.ts';
import {
  AlreadyEnded,
  CodeMismatched,
  LeaseLost,
  Parked,
  PeerRefusal,
  Stopped,
} from './unwinding.ts';

/** Timeouts and retries of calls. Times are in milliseconds. */
export interface CallSettings {
  /** Timeout of one call. */
  readonly callTimeoutMs: number;
  /** Upper bound of the delay before the first retry; the bound doubles with each retry, up to `retryMaxMs`. */
  readonly retryInitialMs: number;
  readonly retryMaxMs: number;
}

/** Requirements of one kind of call. */
export interface CallTerms {
  /** The service whose token the call needs; default: none. */
  readonly audience?: TokenAudience;
  /** Whether the call requires a slot; if so, the call waits until a current grant is available (SB-4). */
  readonly acts?: boolean;
  /** Overrides the default timeout. */
  readonly timeoutMs?: number;
  /**
   * Whether the call is permitted after the run's deadline. Set for reports of the outcome, proposals of a partial
   * final answer, and token renewals.
   */
  readonly afterDeadline?: boolean;
  /** Renews an expired writ. */
  readonly renewWrit?: () => Promise<void>;
}

/**
 * Maximum number of renewals of expired tokens and writs per call; a refusal after these renewals has another cause.
 * Renewals after a back-off (`renews`) are not counted.
 */
const MAX_RENEWALS = 3;
/**
 * Maximum number of retries of a call while the peer does not have the key of a receipt: four minutes on average with
 * the default back-off, which is longer than the replicas of the gateway need to read a rotated key. Without this
 * limit, an agent with an invalid receipt would end only at its deadline or, without a deadline, never.
 */
const MAX_RECEIPT_RETRIES = 100;
/** Time before the run's deadline at which a call times out, in milliseconds. */
const BEFORE_DEADLINE_MS = 20;

/**
 * Calls peers on behalf of one agent, with its tokens, grant and epoch, within its run's deadline,
 * and retries with exponential back-off and full jitter while a retry may succeed. Calls are
 * idempotent by call_id (RT-1, SUP-5).
 */
export class PeerCalls {
  readonly #session: LeaseSession;
  readonly #credentials: Credentials;
  readonly #slot: HeldSlot;
  readonly #settings: CallSettings;

  constructor(parts: {
    readonly session: LeaseSession;
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
   * Makes a call until it succeeds or fails permanently.
   * @throws PeerRefusal when the peer refuses permanently; Unwinding when the agent may not
   *   continue
   */
  async call<T>(terms: CallTerms, work: (options: CallOptions) => Promise<T>): Promise<T> {
    for (let failures = 0, renewals = 0, receiptRetries = 0; ; ) {
      this.#check(terms);
      try {
        return await work(await this.#options(terms));
      } catch (error) {
        if (!isWritError(error)) throw error;
        // An interruption aborts the call; the resulting error looks like an error of the peer.
        this.#check(terms);
        const reaction = reactTo(error);
        switch (reaction.kind) {
          case 'retry':
            failures += 1;
            await this.#backOff(terms, failures);
            if (reaction.renews === 'writ') await terms.renewWrit?.();
            // New tokens help only a call with an audience. A tool call is authorized by its writ, and a token refresh
            // sends its own token.
            else if (reaction.renews === 'tokens' && terms.audience)
              await this.#credentials.renew();
            break;
          case 'await_receipt_key':
            receiptRetries += 1;
            if (receiptRetries > MAX_RECEIPT_RETRIES) throw refusal(error);
            failures += 1;
            await this.#backOff(terms, failures);
            break;
          case 'refresh_tokens':
          case 'renew_writ':
            renewals += 1;
            if (renewals > MAX_RENEWALS) throw refusal(error);
            await this.#renew(reaction.kind, terms, error);
            break;
          case 'renew_slot':
            await this.#slot.renewed();
            // The peer and spawn-budget detect a pause or its end at different times, so the next attempt may be
            // refused again.
            failures += 1;
            await this.#backOff(terms, failures);
            break;
          case 'park':
            throw new Parked(error.message);
          case 'diverged':
            throw new CodeMismatched(
              { mismatch: 'journal_divergence', subject: error.metadata.call_id ?? '' },
              error.message,
            );
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
      detail: 'The run is too close to its deadline for another call.',
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
      ...omitUndefined({ agentToken }),
      ...(agentToken !== undefined && slotGrant !== undefined && { slotGrant }),
    };
  }

  async #renew(
    kind: 'refresh_tokens' | 'renew_writ',
    terms: CallTerms,
    error: Error,
  ): Promise<void> {
    // New tokens help only a call with an audience. A tool call is authorized by its writ, and a token refresh sends
    // its own token.
    const canRefresh = kind === 'refresh_tokens' && terms.audience !== undefined;
    if (canRefresh) await this.#credentials.renew();
    else if (kind === 'renew_writ' && terms.renewWrit !== undefined) await terms.renewWrit();
    else throw refusal(error);
  }

  async #backOff(terms: CallTerms, failures: number): Promise<void> {
    const { retryInitialMs, retryMaxMs } = this.#settings;
    const delayMs = backoffMs(failures, { baseMs: retryInitialMs, maxMs: retryMaxMs });
    try {
      await delay(delayMs, undefined, { signal: this.#session.interrupted });
    } catch {
      this.#check(terms);
    }
  }
}

function refusal(error: Error): PeerRefusal {
  const reason = isWritError(error) ? error.reason.toLowerCase() : 'refused';
  return new PeerRefusal(`error:${reason}`, error.message, { cause: error });
}
