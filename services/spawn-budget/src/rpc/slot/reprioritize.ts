import {
  ReprioritizeRequestSchema,
  type SpawnBudgetService,
} from '@writ/contracts/writ/spawn/v1/spawn_budget_service_pb';
import { assertServesTenant } from '@writ/identity';
import type { Handlers } from '@writ/rpc';
import type { SpawnBudgetContext } from '../../context.ts';
import type { ReprioritizeEvent } from '../../domain/pool/events.ts';
import type { Books } from '../../store/ledger.ts';
import { type Answer, findAnswers, type RequestKey, recordAnswer } from '../../store/requests.ts';
import { requestDigest } from '../idempotency.ts';
import { priorityOf } from '../messages/priority.ts';
import { changeMessage } from '../messages/slot.ts';
import { signingSlot } from '../slot-grants.ts';

/**
 * Changes an agent's weight, which may pause or resume it or another (SB-5).
 * @throws what reduce throws
 */
export function reprioritize(
  context: SpawnBudgetContext,
): Handlers<typeof SpawnBudgetService>['reprioritize'] {
  return async (request, { caller }) => {
    const { tenant, runId, requestId, agentInstance: instance } = request;
    assertServesTenant(caller, tenant);
    const event: ReprioritizeEvent = {
      type: 'reprioritize',
      instance,
      priority: priorityOf(request.priority),
    };
    const digest = requestDigest(ReprioritizeRequestSchema, request);
    const key: RequestKey = { tenant, runId, instance, rpc: 'reprioritize', requestId, digest };
    const { changes, slot } = await context.ledger.transaction([key], async (books) => {
      const { same } = await findAnswers(books.trx, key);
      await books.recall(key, [instance]);
      const answer = same ?? (await weigh(books, key, event));
      return { ...answer, slot: signingSlot(context, books.standing(key, instance)) };
    });
    return {
      slot: await slot,
      changes: changes.map(changeMessage),
    };
  };
}

async function weigh(books: Books, key: RequestKey, event: ReprioritizeEvent): Promise<Answer> {
  const { changes } = books.apply(key, event);
  const answer = { changes: changes.filter(({ to }) => to === 'paused' || to === 'active') };
  await recordAnswer(books.trx, key, answer, books.at);
  return answer;
}
