import type { SlotChange } from '../domain/pool/pool.ts';
import type { PoolKey } from './spawn-store.ts';

/** A change of slots, and the pool where it happened. */
export interface Move extends PoolKey {
  readonly change: SlotChange;
  readonly at: Date;
}
