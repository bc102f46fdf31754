import { acquire } from './acquire.ts';
import type { EventTime, Outcome, PoolEvent, Reduced } from './events.ts';
import { expire } from './expire.ts';
import type { Pool } from './pool.ts';
import { PoolDraft } from './pool-draft.ts';
import { close, release } from './release.ts';
import { renew } from './renew.ts';
import { reprioritize } from './reprioritize.ts';

/**
 * Applies an event to a pool. Pure: the given pool is not changed, and the event carries the time. Expired leases are
 * ended first, so that no agent keeps a slot only because the sweep has not yet ended its lease (SB-8).
 * @throws NotFoundError, PreconditionError from the rule of the event; InternalError
 *   SPAWN_BUDGET_INCONSISTENT (SB-6)
 */
export function reduce(pool: Pool, event: PoolEvent, time: EventTime): Reduced {
  const draft = new PoolDraft(pool, time);
  expire(draft);
  return draft.finish(apply(draft, event));
}

function apply(draft: PoolDraft, event: PoolEvent): Outcome {
  switch (event.type) {
    case 'acquire':
      return acquire(draft, event);
    case 'release':
      return release(draft, event);
    case 'renew':
      return renew(draft, event);
    case 'reprioritize':
      return reprioritize(draft, event);
    case 'close':
      return close(draft);
    case 'expire':
      return {};
  }
}
