import {
  ReleaseRequestSchema,
  type SpawnBudgetService,
} from '@writ/contracts/writ/spawn/v1/spawn_budget_service_pb';
import { assertServesTenant } from '@writ/identity';
import type { Handlers } from '@writ/rpc';
import type { SpawnBudgetContext } from '../../context.ts';
import { type Answer, findAnswers, type RequestKey, recordAnswer } from '../../store/requests.ts';
import { requestDigest } from '../idempotency.ts';
import { changeMessage } from '../messages/slot.ts';

/** Returns a slot, which goes to the first in line (SB-3, SB-4). What is unknown is released already. */
export function release(
  context: SpawnBudgetContext,
): Handlers<typeof SpawnBudgetService>['release'] {
  return async (request, { caller }) => {
    const { tenant, runId, requestId, agentInstance: instance } = request;
    assertServesTenant(caller, tenant);
    const digest = requestDigest(ReleaseRequestSchema, request);
    const key: RequestKey = { tenant, runId, instance, rpc: 'release', requestId, digest };
    const { released, changes } = await context.ledger.transaction(
      [key],
      async (books): Promise<Answer> => {
        if (books.find(key) === undefined) return { changes: [], released: false };
        const { same } = await findAnswers(books.trx, key);
        if (same !== undefined) return same;
        const { outcome, changes: all } = books.apply(key, { type: 'release', instance });
        const answer: Answer = {
          released: outcome.released === true,
          changes: all.filter(({ to }) => to === 'active'),
        };
        await recordAnswer(books.trx, key, answer, books.at);
        return answer;
      },
    );
    return { released: released === true, changes: changes.map(changeMessage) };
  };
}
