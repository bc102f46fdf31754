import { AsyncLocalStorage } from 'node:async_hooks';
import { type AgentKey, UnavailableError, WakeableLoop } from '@writ/kernel';
import type { SlotAnswer } from '../../domain/agent/slot.ts';
import type { SpawnBudgetPeer } from '../../peers/spawn-budget.ts';
import type { Credentials } from '../credentials.ts';
import type { LeaseSession } from '../leases/lease-session.ts';
import { HeldSlot } from './held-slot.ts';
import type { RenewalEntry } from './inactive-agents.ts';
import { InactiveAgents, type InactiveAgentsParts } from './inactive-agents.ts';
import { PauseWatch } from './pause-watch.ts';

/** Settings of slot renewal. Times are in milliseconds. */
export interface SlotSettings {
  /**
   * Mean interval between two rounds. Each round renews the slots of all leased agents, and polls one page of preempted
   * agents.
   */
  readonly slotRenewMs: number;
  readonly retryInitialMs: number;
}

/** Dependencies of {@link SlotRenewer}. */
export interface SlotRenewerParts extends InactiveAgentsParts {
  readonly peer: SpawnBudgetPeer;
  readonly settings: SlotSettings & InactiveAgentsParts['settings'];
}

/** Timeout of one renewal; shorter than the lifetime of a grant. */
const CALL_TIMEOUT_MS = 2_000;

/**
 * Renews the slots of all agents of a worker in the background, batched into one call (SB-8): renews the grants of
 * leased agents, keeps the slots of suspended agents, and checks whether preempted agents have a slot again. Renewals
 * are serialized, so that they cannot overtake each other.
 */
export class SlotRenewer {
  readonly #parts: SlotRenewerParts;
  readonly #inactive: InactiveAgents;
  readonly #watch: PauseWatch;
  readonly #held = new Set<HeldSlot>();
  readonly #asked = new Set<HeldSlot>();
  readonly #stopping = new AbortController();
  // `hold` is called inside an agent's span, which the watch must not inherit.
  readonly #outside = AsyncLocalStorage.snapshot();
  readonly #loop: WakeableLoop;
  #nextRound = 0;
  #isInactiveDue = false;
  #isFailing = false;

  constructor(parts: SlotRenewerParts) {
    this.#parts = parts;
    const { retryInitialMs, slotRenewMs } = parts.settings;
    this.#loop = new WakeableLoop({
      pass: () => this.#renewDue(),
      intervalMs: slotRenewMs,
      backoff: { baseMs: 2 * retryInitialMs, maxMs: slotRenewMs },
      onError: (error) => this.#failed(error),
    });
    this.#inactive = new InactiveAgents(parts);
    this.#watch = new PauseWatch({
      peer: parts.peer,
      log: parts.log,
      retryMs: parts.settings.slotRenewMs,
      slotChanged: (agent) => this.#slotChanged(agent),
    });
  }

  /** Starts the renewals, including those of agents that a previous process left suspended or parked. */
  start(): void {
    this.#inactive.start();
    this.#loop.start();
  }

  /** Stops renewals; leases expire. */
  async stop(): Promise<void> {
    this.#stopping.abort();
    await Promise.all([this.#loop.stop(), this.#watch.stop()]);
  }

  /**
   * Tracks the slot of a leased agent. Requests its first grant, unless the delivery contained a grant; a delivered
   * grant is renewed in the next round.
   */
  hold(session: LeaseSession, credentials: Pick<Credentials, 'freshToken' | 'renew'>): HeldSlot {
    const slot: HeldSlot = new HeldSlot({
      session,
      credentials,
      ask: () => {
        if (!this.#held.has(slot)) return;
        this.#asked.add(slot);
        this.#loop.wake();
      },
    });
    this.#held.add(slot);
    this.#outside(() => this.#watch.add(session.lease.tenant));
    if (slot.current === undefined) slot.ask();
    return slot;
  }

  /**
   * Stops tracking the slot of a lease that ended; a suspended or preempted agent is handled as
   * inactive.
   */
  release(session: LeaseSession, isInactive: boolean): void {
    for (const slot of this.#held) {
      if (slot.lease !== session.lease) continue;
      this.#held.delete(slot);
      this.#asked.delete(slot);
    }
    if (!isInactive) return;
    this.#reportInactive(session.lease);
    this.#loop.wake();
  }

  #reportInactive(agent: AgentKey): void {
    this.#inactive.note(agent);
    this.#isInactiveDue = true;
  }

  #slotChanged(agent: AgentKey): void {
    const held = [...this.#held].find(({ lease }) => isSame(lease, agent));
    if (held !== undefined) held.ask();
    else this.#reportInactive(agent);
    this.#loop.wake();
  }

  /** Renews the due slots; returns the delay until the next round, in milliseconds. */
  async #renewDue(): Promise<number> {
    const entries = await this.#due();
    if (entries.length > 0) await this.#renew(entries);
    return this.#isInactiveDue ? 0 : Math.max(1, this.#nextRound - performance.now());
  }

  /**
   * Returns the entries to renew now. At the end of a round, these are all leased agents, unreported inactive agents
   * and a page of preempted agents; otherwise the leased agents whose renewal was requested and, if reports are due, a
   * page of unreported inactive agents.
   */
  async #due(): Promise<readonly RenewalEntry[]> {
    const isRound = performance.now() >= this.#nextRound;
    const slots = isRound ? [...this.#held] : [...this.#asked];
    this.#asked.clear();
    const held = slots.flatMap((slot) => {
      const renewal = slot.renewal();
      if (renewal === undefined) return [];
      return [{ tenant: slot.lease.tenant, renewal, answered: slot.answered.bind(slot) }];
    });
    if (!isRound && !this.#isInactiveDue) return held;
    this.#isInactiveDue = false;
    // Jitter, so that workers that started together do not stay synchronized.
    const intervalMs = this.#parts.settings.slotRenewMs * (0.9 + Math.random() * 0.2);
    if (isRound) this.#nextRound = performance.now() + intervalMs;
    const inactive = await this.#inactive.entries(isRound);
    // Tenants of agents that a previous process left suspended or parked are not watched yet.
    for (const { tenant } of inactive) this.#watch.add(tenant);
    return [...held, ...inactive];
  }

  async #renew(entries: readonly RenewalEntry[]): Promise<void> {
    const { peer, log } = this.#parts;
    const renewals = entries.map(({ renewal }) => renewal);
    const { signal } = this.#stopping;
    const answers = await peer.renew(renewals, { signal, timeoutMs: CALL_TIMEOUT_MS });
    for (const [index, entry] of entries.entries()) {
      const answer = answers[index];
      if (answer !== undefined && !isUnverified(answer)) await entry.answered(answer);
    }
    if (this.#inactive.isBehind) this.#isInactiveDue = true;
    const agents = answers.filter(isUnverified).length;
    if (agents > 0) throw unverified(agents);
    if (this.#isFailing) log.info({ agents: entries.length }, 'slot renewal recovered');
    this.#isFailing = false;
  }

  #failed(error: unknown): void {
    if (this.#stopping.signal.aborted) return;
    if (!this.#isFailing) this.#parts.log.warn({ err: error }, 'failed to renew slots');
    this.#isFailing = true;
    // After a failure, every slot needs a renewal.
    this.#nextRound = 0;
  }
}

/** Whether spawn-budget could not fetch the key of the token; the answer then says nothing about the slot. */
function isUnverified({ refusal }: SlotAnswer): boolean {
  return refusal === 'KEYS_UNAVAILABLE';
}

function unverified(agents: number): UnavailableError {
  return new UnavailableError(
    'KEYS_UNAVAILABLE',
    `spawn-budget cannot fetch the keys of the tokens of ${agents} agents.`,
    { agents: String(agents) },
  );
}

function isSame(one: AgentKey, other: AgentKey): boolean {
  return (
    one.tenant === other.tenant && one.runId === other.runId && one.instance === other.instance
  );
}
