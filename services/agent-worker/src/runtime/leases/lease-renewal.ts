import { agentKeyText, WakeableLoop } from '@writ/kernel';
import type { Logger } from '@writ/telemetry';
import {
  endUnusedLease,
  type LeasedAgent,
  type LeaseTerms,
  renewLeases,
} from '../../store/leases.ts';
import type { WorkerStore } from '../../store/worker-store.ts';
import type { LeaseSession } from './lease-session.ts';

/** Owner and duration of the leases to renew. */
export interface RenewalSettings {
  /** Id of this process of the worker; see leaseOwner. */
  readonly owner: string;
  readonly leaseTtlMs: number;
}

/** Dependencies of {@link LeaseRenewal}. */
export interface LeaseRenewalParts {
  readonly store: WorkerStore;
  /** Returns the time for values that other workers compare with their clocks, such as lease expiries (BD-3). */
  readonly sharedNow: () => Date;
  readonly log: Logger;
  readonly settings: RenewalSettings;
  /** The sessions of the process, by agentKeyText. */
  readonly sessions: ReadonlyMap<string, LeaseSession>;
  /** Called when a lease without a session was released, so that its agent can be claimed again. */
  readonly onRelease: () => void;
}

/** Renews the leases of a process three times per TTL, and interrupts the sessions whose lease was lost (RT-2). */
export class LeaseRenewal {
  readonly #parts: LeaseRenewalParts;
  readonly #loop: WakeableLoop;
  /** Leases of this process that had no session at the latest renewal. */
  #orphans: ReadonlySet<string> = new Set();

  constructor(parts: LeaseRenewalParts) {
    this.#parts = parts;
    const { log, settings } = parts;
    const intervalMs = settings.leaseTtlMs / 3;
    this.#loop = new WakeableLoop({
      pass: () => this.#renew(),
      intervalMs,
      backoff: { baseMs: intervalMs, maxMs: intervalMs },
      onError: (error) => log.warn({ err: error }, 'failed to renew leases'),
    });
  }

  /** Starts the renewals. */
  start(): void {
    this.#loop.start();
  }

  /** Stops the renewals; resolves when the current one has ended. */
  async stop(): Promise<void> {
    await this.#loop.stop();
  }

  async #renew(): Promise<void> {
    const { store, sharedNow, settings, sessions } = this.#parts;
    if (sessions.size === 0) return;
    const before = [...sessions.values()];
    const terms = leaseTerms(sharedNow(), settings);
    const held = await store.transaction((trx) => renewLeases(trx, terms), { background: true });
    const epochs = new Map(held.map((lease) => [agentKeyText(lease), lease.epoch]));
    for (const session of before) {
      const { lease } = session;
      if (epochs.get(agentKeyText(lease)) !== lease.epoch) session.interrupt('lost', true);
    }
    await this.#releaseOrphans(held);
  }

  /**
   * Releases leases that had no session at two consecutive renewals, so that their agents can be claimed again. Such a
   * lease exists when the outcome of the commit that acquired it is unknown.
   */
  async #releaseOrphans(held: readonly LeasedAgent[]): Promise<void> {
    const { store, settings, sessions, onRelease } = this.#parts;
    const hasSession = (lease: LeasedAgent) =>
      sessions.get(agentKeyText(lease))?.lease.epoch === lease.epoch;
    const nameOf = (lease: LeasedAgent) => `${agentKeyText(lease)}/${lease.epoch}`;
    const seen = this.#orphans;
    const orphans = held.filter((lease) => !hasSession(lease));
    this.#orphans = new Set(orphans.map(nameOf));
    const stuck = orphans.filter((lease) => seen.has(nameOf(lease)));
    if (stuck.length === 0) return;
    await store.transaction(
      async (trx) => {
        for (const lease of stuck) await endUnusedLease(trx, settings.owner, lease);
      },
      { background: true },
    );
    onRelease();
  }
}

/** Returns the terms of a lease that starts or is renewed at `at`. */
export function leaseTerms(at: Date, { owner, leaseTtlMs }: RenewalSettings): LeaseTerms {
  return { owner, at, expiresAt: new Date(at.getTime() + leaseTtlMs) };
}
