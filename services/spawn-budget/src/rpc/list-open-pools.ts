import { durationMs } from '@bufbuild/protobuf/wkt';
import type { SpawnBudgetService } from '@writ/contracts/writ/spawn/v1/spawn_budget_service_pb';
import type { Handlers } from '@writ/rpc';
import type { SpawnBudgetContext } from '../context.ts';

/** Lists the runs with an open pool, for the supervisor's sweep (BD-3). */
export function listOpenPools({
  repository,
}: SpawnBudgetContext): Handlers<typeof SpawnBudgetService>['listOpenPools'] {
  return async ({ after, pageSize, minAge }) => ({
    pools: await repository.openPools({
      after,
      limit: pageSize,
      minAgeMs: minAge === undefined ? 0 : durationMs(minAge),
    }),
  });
}
