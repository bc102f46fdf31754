import { acquire } from './acquire.ts';
import { PoolDraft } from './draft.ts';
import type { EventTime, Outcome, PoolEvent, Reduced } from './events.ts';
import { expire } from './expire.ts';
import type { Pool } from './pool.ts';
import { close, release } from './release.ts';
import { renew } from './renew.ts';
import { reprioritize } from './reprioritize.ts';

/**
 * The pool after `event`, and what came of it. Pure: the given pool stays as it is, and time is what
 * the event says. Leases lapse first, so nobody acts on a lease that the sweep has not met yet (SB-8).
 * @throws NotFoundError, PreconditionError as the single rules say; InternalError
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
