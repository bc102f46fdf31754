import { SpawnBudgetService } from '@writ/contracts/writ/spawn/v1/spawn_budget_service_pb';
import { keyRoute } from '@writ/identity';
import { endless, type Route, route } from '@writ/rpc';
import type { SpawnBudgetContext } from '../context.ts';
import { closePool } from './pool/close-pool.ts';
import { getPool } from './pool/get-pool.ts';
import { openPool } from './pool/open-pool.ts';
import { acquire } from './slot/acquire.ts';
import { release } from './slot/release.ts';
import { renew } from './slot/renew.ts';
import { reprioritize } from './slot/reprioritize.ts';
import { watchPauses } from './slot/watch-pauses.ts';

/** Everything that spawn-budget serves. */
export function spawnBudgetRoutes(context: SpawnBudgetContext): readonly Route[] {
  return [
    route(SpawnBudgetService, {
      openPool: openPool(context),
      acquire: acquire(context),
      release: release(context),
      renew: renew(context),
      reprioritize: reprioritize(context),
      getPool: getPool(context),
      watchPauses: endless(watchPauses(context)),
      closePool: closePool(context),
    }),
    keyRoute(context.signer),
  ];
}
