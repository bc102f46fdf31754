import { WakeableLoop } from '@writ/kernel';
import type { Replicas } from '../replicas/replicas.ts';
import type { Store } from '../store.ts';
import {
  assignSlots,
  readSlots,
  type SlotAllocation,
  type SlotDemand,
  type SlotLeasesDatabase,
} from './slot-leases.ts';

/** The user of a share of slots. */
export interface SlotUser {
  /** Slots in use, waiting calls and their weight. */
  demand(): Pick<SlotDemand, 'inUse' | 'waiting' | 'weight'>;
  /** Called when more slots may have been assigned. */
  granted(): void;
  /**
   * Called when the store fails to read or assign slots while calls wait; the user then rejects the waiting calls with
   * `error`.
   */
  failed(error: unknown): void;
}

/** The share of this process in the slots that all replicas share (SUP-3, TG-6). */
export interface SlotShare {
  /** Number of slots that this process may use. */
  allowance(): number;
  /**
   * Number of known waiting calls at all replicas, excluding calls of this process for which a slot is free.
   * @param queued waiting calls of this process
   * @param inUse slots in use by this process
   */
  waiting(queued: number, inUse: number): number;
  /** Whether this process may reuse a slot that it has freed. */
  mayReuse(): boolean;
  /** Reports a change of the demand. */
  changed(): void;
  close(): Promise<void>;
}

/** Options of {@link createSlotShare}. */
export interface SlotShareOptions<DB extends SlotLeasesDatabase> {
  readonly store: Store<DB>;
  readonly replicas: Replicas;
  /** Name of the slots, the same at every replica. */
  readonly name: string;
  /** Total number of slots; may change. */
  readonly limit: () => number;
  readonly user: SlotUser;
}

/** Options of one slot assignment. */
interface AssignmentOptions {
  /** Replicas found dead just now; for this assignment only, because a replica can reconnect. Default: none. */
  readonly dead?: ReadonlySet<string>;
  /** Whether this process shuts down. Default: false. */
  readonly leaves?: boolean;
}

const POLL_MS = 250;
const NONE: ReadonlySet<string> = new Set();
const EMPTY_ALLOCATION: SlotAllocation = {
  leased: 0,
  waiting: 0,
  leasedByOthers: 0,
  waitingAtOthers: 0,
  free: 0,
  others: [],
  known: false,
};

/**
 * Creates the share of this process in the slots that all replicas share. With a single-process store the share is all
 * slots. Otherwise slots are leased in the store: while no other replica waits, a replica reuses its slots without a
 * write. The slots of a dead replica become free once the replica is detected as dead.
 */
export function createSlotShare<DB extends SlotLeasesDatabase>(
  options: SlotShareOptions<DB>,
): SlotShare {
  const { replicas, limit } = options;
  return replicas.shared ? new LeasedShare(options) : localSlotShare(limit);
}

/** Creates a share of all slots, for a process without other replicas. */
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
  readonly #loop: WakeableLoop;
  #allocation: SlotAllocation = EMPTY_ALLOCATION;
  /** Slots that the current transaction returns. */
  #returning = 0;
  /** Whether the next pass assigns slots instead of only reading them. */
  #mustShare = false;
  /** Whether an assignment failed and no read has succeeded since, so that the store may differ from `#allocation`. */
  #mustRead = false;

  constructor(options: SlotShareOptions<DB>) {
    this.#options = options;
    this.#topic = `slots:${options.name}`;
    this.#loop = new WakeableLoop({
      pass: () => this.#work(),
      intervalMs: POLL_MS,
      onError: (error) => options.user.failed(error),
    });
    this.#unsubscribe = options.replicas.onHint(this.#topic, () => this.#wake());
  }

  allowance(): number {
    // A replica that the others consider dead has lost its slots.
    return this.#options.replicas.isVisible() ? this.#allocation.leased - this.#returning : 0;
  }

  waiting(queued: number, inUse: number): number {
    const { leasedByOthers, waitingAtOthers } = this.#allocation;
    const open = Math.max(0, this.#options.limit() - leasedByOthers - inUse);
    return Math.max(0, queued - open) + waitingAtOthers;
  }

  mayReuse(): boolean {
    const { leased, waitingAtOthers } = this.#allocation;
    return waitingAtOthers === 0 && leased <= this.#options.limit();
  }

  changed(): void {
    this.#mustShare = true;
    this.#wake();
  }

  async close(): Promise<void> {
    this.#unsubscribe();
    await this.#loop.stop();
    if (!this.#allocation.known) return;
    // Otherwise the slots would be free only after this replica is detected as dead.
    await this.#share({ leaves: true }).catch(() => undefined);
  }

  #wake(): void {
    this.#loop.wake();
    this.#loop.start();
  }

  /** Assigns or reads slots; returns the pause after it, ms. */
  async #work(): Promise<number> {
    const mustShare = this.#mustShare;
    this.#mustShare = false;
    const { user } = this.#options;
    try {
      if (mustShare) await this.#share();
      else await this.#read();
      user.granted();
    } catch (error) {
      if (user.demand().waiting > 0) user.failed(error);
    }
    const { inUse, waiting } = user.demand();
    const { leased, waiting: recorded } = this.#allocation;
    const isBusy = inUse > 0 || waiting > 0 || leased > 0 || recorded > 0;
    return isBusy || this.#mustRead ? POLL_MS : Number.POSITIVE_INFINITY;
  }

  async #share({ dead = NONE, leaves = false }: AssignmentOptions = {}): Promise<void> {
    const { store, replicas, name, limit, user } = this.#options;
    const { inUse, weight, ...wanted } = user.demand();
    const waiting = leaves ? 0 : wanted.waiting;
    const { leased } = this.#allocation;
    const idle = Math.max(0, leased - inUse);
    // Returns idle slots if calls wait at other replicas, no call of this process waits, or more slots are leased than
    // the limit allows.
    const returned = this.mayReuse() && waiting > 0 ? 0 : idle;
    const demand = {
      ...{ name, replica: replicas.id, limit: limit(), inUse, returned, weight },
      waiting: Math.max(0, waiting - (idle - returned)),
      dead,
      leaves,
    };
    this.#returning = returned;
    let notify: boolean;
    try {
      const shared = await store.transaction((trx) => assignSlots(trx, demand), {
        background: true,
      });
      this.#allocation = shared.allocation;
      this.#mustRead = false;
      notify = shared.notify;
    } catch (error) {
      // The outcome of the commit may be unknown, so the returned slots are not used until the next read.
      const recorded = Math.max(this.#allocation.waiting, demand.waiting);
      this.#allocation = { ...this.#allocation, leased: leased - returned, waiting: recorded };
      this.#mustRead = true;
      throw error;
    } finally {
      this.#returning = 0;
    }
    if (notify) replicas.hint(this.#topic);
  }

  async #read(): Promise<void> {
    const { store, replicas, name, limit, user } = this.#options;
    const asked = { name, replica: replicas.id, limit: limit() };
    const allocation = await readSlots(store.db, asked);
    this.#allocation = allocation;
    this.#mustRead = false;
    const { inUse, waiting } = user.demand();
    const { leased, waitingAtOthers, free, others, known } = allocation;
    const lost = !known && inUse > 0;
    const wants = waiting > leased - inUse;
    const dead = wants ? await replicas.findDead(others) : NONE;
    const spare = leased > inUse && waiting === 0 && (waitingAtOthers > 0 || inUse === 0);
    // The waiting calls of this process have ended, but the store still records them, so other replicas would leave a
    // slot unused.
    const stale = allocation.waiting > 0 && waiting === 0;
    if (lost || spare || stale || (wants && (free > 0 || !known || dead.size > 0))) {
      await this.#share({ dead });
    }
  }
}
