import type { SpawnBudgetService } from '@writ/contracts/writ/spawn/v1/spawn_budget_service_pb';
import { assertServesTenant } from '@writ/identity';
import { DEFAULT_SPAWN_BUDGET } from '@writ/kernel';
import type { Handlers } from '@writ/rpc';
import type { SpawnBudgetContext } from '../../context.ts';
import type { Books } from '../../store/ledger.ts';
import type { PoolKey } from '../../store/spawn-store.ts';
import { poolMessage } from '../messages/pool.ts';

/**
 * Releases every slot of a run that is over; again changes nothing. A run that has no pool gets a
 * closed one, so that an opening which comes late is refused.
 */
export function closePool(
  context: SpawnBudgetContext,
): Handlers<typeof SpawnBudgetService>['closePool'] {
  return async ({ tenant, runId, requestId }, { caller, traceparent }) => {
    assertServesTenant(caller, tenant);
    const key = { tenant, runId };
    const pool = await context.ledger.transaction([key], async (books) => {
      if (books.find(key) === undefined) await openClosed(books, key, requestId, traceparent);
      else books.apply(key, { type: 'close' });
      return books.get(key).pool;
    });
    return { pool: poolMessage(key, pool) };
  };
}

async function openClosed(
  books: Books,
  key: PoolKey,
  requestId: string,
  traceparent: string,
): Promise<void> {
  await books.open({
    ...key,
    pool: {
      budget: DEFAULT_SPAWN_BUDGET,
      root: '',
      closed: true,
      members: new Map(),
      sequence: 0,
      totalSpawns: 0,
      totalPauses: 0,
      totalRefusals: 0,
    },
    requestId,
    requestDigest: '',
    traceparent,
    openedAt: books.at,
    closedAt: books.at,
  });
}
