import { AsyncLocalStorage } from 'node:async_hooks';
import type { Replicas } from '../replicas/replicas.ts';
import type { Store } from '../store.ts';
import {
  readSlots,
  type SlotDemand,
  type SlotLeasesDatabase,
  type SlotStanding,
  shareOut,
} from './slot-leases.ts';

/** Who uses a share of slots, and is told when it changes. */
export interface SlotUser {
  /** Slots in use, calls that wait, and the weight of those. */
  demand(): Pick<SlotDemand, 'inUse' | 'waiting' | 'weight'>;
  /** There may be more slots now. */
  granted(): void;
  /** The store cannot be asked, so that nobody who waits gets one. */
  failed(error: unknown): void;
}

/** This process's share of slots that all replicas have together (SUP-3, TG-6). */
export interface SlotShare {
  /** Slots that may be in use here now. */
  allowance(): number;
  /**
   * Calls that wait at all replicas, as far as is known, without those for which there is a slot still.
   * @param queued calls that wait here
   * @param inUse slots in use here
   */
  waiting(queued: number, inUse: number): number;
  /** Whether a slot that became free here may be used here at once. */
  mayReuse(): boolean;
  /** Says that what is needed here changed. */
  changed(): void;
  close(): Promise<void>;
}

/** What a share is made of. */
export interface SlotShareOptions<DB extends SlotLeasesDatabase> {
  readonly store: Store<DB>;
  readonly replicas: Replicas;
  /** Of the slots, the same at every replica. */
  readonly name: string;
  /** Slots of all replicas together; may change. */
  readonly limit: () => number;
  readonly user: SlotUser;
}

const LOOK_MS = 250;
const NOTHING_YET: SlotStanding = {
  leased: 0,
  waiting: 0,
  leasedElsewhere: 0,
  waitingElsewhere: 0,
  free: 0,
  others: [],
  known: false,
};

/**
 * The share of this process in slots that replicas have together. On a store of one process it is all of
 * them. Else they are leased in the store: as long as nobody waits elsewhere, a replica uses again what
 * it has, and nothing is written; what a dead replica had is free once it is known to have ended.
 */
export function createSlotShare<DB extends SlotLeasesDatabase>(
  options: SlotShareOptions<DB>,
): SlotShare {
  const { replicas, limit } = options;
  return replicas.shared ? new LeasedShare(options) : localSlotShare(limit);
}

/** All of the slots, for a process that has no others beside it. */
export function localSlotShare(limit: () => number): SlotShare {
  return {
    allowance: limit,
    waiting: (queued) => queued,
    mayReuse: () => true,
    changed: () => undefined,
    close: async () => undefined,
  };
}

class LeasedShare<DB extends SlotLeasesDatabase> implements SlotShare {
  readonly #options: SlotShareOptions<DB>;
  readonly #topic: string;
  readonly #unsubscribe: () => void;
  // Whoever asks for a slot is inside of a request, whose span must not be inherited.
  readonly #outside = AsyncLocalStorage.snapshot();
  #standing: SlotStanding = NOTHING_YET;
  #gone: ReadonlySet<string> = new Set();
  /** Slots that may be another's as soon as what is under way is committed. */
  #givingBack = 0;
  #working: Promise<void> | undefined;
  #next: 'share' | 'look' | undefined;
  #timer: NodeJS.Timeout | undefined;
  #closed = false;

  constructor(options: SlotShareOptions<DB>) {
    this.#options = options;
    this.#topic = `slots:${options.name}`;
    this.#unsubscribe = options.replicas.onHint(this.#topic, () => this.#begin('look'));
  }

  allowance(): number {
    // Whom the others do not see has lost what it had.
    return this.#options.replicas.isVisible() ? this.#standing.leased - this.#givingBack : 0;
  }

  waiting(queued: number, inUse: number): number {
    const { leasedElsewhere, waitingElsewhere } = this.#standing;
    const open = Math.max(0, this.#options.limit() - leasedElsewhere - inUse);
    return Math.max(0, queued - open) + waitingElsewhere;
  }

  mayReuse(): boolean {
    const { leased, waitingElsewhere } = this.#standing;
    return waitingElsewhere === 0 && leased <= this.#options.limit();
  }

  changed(): void {
    this.#begin('share');
  }

  async close(): Promise<void> {
    this.#closed = true;
    this.#unsubscribe();
    clearTimeout(this.#timer);
    await this.#working;
    if (!this.#standing.known) return;
    // Else the others would have to see first that this replica has ended.
    await this.#share(true).catch(() => undefined);
  }

  #begin(what: 'share' | 'look'): void {
    if (this.#closed) return;
    this.#next = this.#next === 'share' ? 'share' : what;
    this.#working ??= this.#outside(() => this.#work()).finally(() => {
      this.#working = undefined;
      if (this.#next !== undefined) this.#begin(this.#next);
    });
  }

  async #work(): Promise<void> {
    clearTimeout(this.#timer);
    const what = this.#next;
    this.#next = undefined;
    const { user } = this.#options;
    try {
      if (what === 'share') await this.#share();
      else await this.#look();
      user.granted();
    } catch (error) {
      if (user.demand().waiting > 0) user.failed(error);
    }
    const { inUse, waiting } = user.demand();
    const { leased, waiting: told } = this.#standing;
    const busy = inUse > 0 || waiting > 0 || leased > 0 || told > 0;
    if (busy && !this.#closed) {
      this.#timer = setTimeout(() => this.#begin('look'), LOOK_MS);
      this.#timer.unref();
    }
  }

  async #share(leaves = false): Promise<void> {
    const { store, replicas, name, limit, user } = this.#options;
    const { inUse, weight, ...wanted } = user.demand();
    const waiting = leaves ? 0 : wanted.waiting;
    const { leased } = this.#standing;
    const idle = Math.max(0, leased - inUse);
    // What others wait for is shared out anew; what nobody needs here is not kept.
    const givesBack = this.mayReuse() && waiting > 0 ? 0 : idle;
    const demand = {
      ...{ name, replica: replicas.id, limit: limit(), inUse, givesBack, weight },
      waiting: Math.max(0, waiting - (idle - givesBack)),
      gone: this.#gone,
      leaves,
    };
    this.#givingBack = givesBack;
    let tell: boolean;
    try {
      const shared = await store.transaction((trx) => shareOut(trx, demand), { background: true });
      this.#standing = shared.standing;
      tell = shared.tell;
    } catch (error) {
      // Whether it was committed may be unknown: what is not in use is no longer counted on.
      const told = Math.max(this.#standing.waiting, demand.waiting);
      this.#standing = { ...this.#standing, leased: leased - givesBack, waiting: told };
      throw error;
    } finally {
      this.#givingBack = 0;
    }
    if (tell) replicas.hint(this.#topic);
  }

  async #look(): Promise<void> {
    const { store, replicas, name, limit, user } = this.#options;
    const asked = { name, replica: replicas.id, limit: limit() };
    const standing = await readSlots(store.db, asked);
    this.#standing = standing;
    const { inUse, waiting } = user.demand();
    const { leased, waitingElsewhere, free, others, known } = standing;
    const lost = !known && inUse > 0;
    const wants = waiting > leased - inUse;
    this.#gone = wants ? await replicas.findDead(others) : new Set();
    const spare = leased > inUse && waiting === 0 && (waitingElsewhere > 0 || inUse === 0);
    // Whoever waited went away, and others would leave a slot to nobody.
    const stale = standing.waiting > 0 && waiting === 0;
    if (lost || spare || stale || (wants && (free > 0 || !known || this.#gone.size > 0))) {
      await this.#share();
    }
  }
}
