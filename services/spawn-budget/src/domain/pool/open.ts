import type { EventTime, OpenEvent } from './events.ts';
import type { Pool } from './pool.ts';

/** Creates a run's pool with the root in its first slot (SB-1). */
export function openPool(
  { root, priority, budget, deadline }: OpenEvent,
  { at, leaseMs }: EventTime,
): Pool {
  const over = deadline !== undefined && at >= deadline;
  const expiresAt = Math.min(at + leaseMs, deadline ?? Number.POSITIVE_INFINITY);
  return {
    budget,
    root: root.instance,
    ...(deadline === undefined ? {} : { deadline }),
    closed: false,
    members: new Map([
      [
        root.instance,
        {
          agent: root,
          depth: 0,
          priority,
          ...(over ? { state: 'suspended' } : { state: 'active', expiresAt }),
          order: 1,
          epoch: 0n,
          acquiredAt: at,
        },
      ],
    ]),
    sequence: 1,
    totalSpawns: 0,
    totalPauses: 0,
    totalRefusals: 0,
  };
}
