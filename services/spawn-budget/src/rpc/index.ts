import { SpawnBudgetService } from '@writ/contracts/writ/spawn/v1/spawn_budget_service_pb';
import { keyRoute } from '@writ/identity';
import { endless, type Route, route } from '@writ/rpc';
import type { SpawnBudgetContext } from '../context.ts';
import { acquire } from './acquire.ts';
import { closePool } from './close-pool.ts';
import { getPool } from './get-pool.ts';
import { listOpenPools } from './list-open-pools.ts';
import { openPool } from './open-pool.ts';
import { release } from './release.ts';
import { renew } from './renew.ts';
import { reprioritize } from './reprioritize.ts';
import { watchPauses } from './watch-pauses.ts';

/** The routes of spawn-budget. */
export function spawnBudgetRoutes(context: SpawnBudgetContext): readonly Route[] {
  return [
    route(SpawnBudgetService, {
      openPool: openPool(context),
      acquire: acquire(context),
      release: release(context),
      renew: renew(context),
      reprioritize: reprioritize(context),
      getPool: getPool(context),
      listOpenPools: listOpenPools(context),
      watchPauses: endless(watchPauses(context)),
      closePool: closePool(context),
    }),
    keyRoute(context.signer),
  ];
}
