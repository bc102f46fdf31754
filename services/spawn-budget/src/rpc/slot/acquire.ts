import {
  AcquireRequestSchema,
  type SpawnBudgetService,
} from '@writ/contracts/writ/spawn/v1/spawn_budget_service_pb';
import { assertServesTenant } from '@writ/identity';
import { BudgetExhaustedError } from '@writ/kernel';
import type { Handlers } from '@writ/rpc';
import type { SpawnBudgetContext } from '../../context.ts';
import type { AcquireEvent, Refusal } from '../../domain/pool/events.ts';
import type { Books } from '../../store/ledger.ts';
import { type Answer, findAnswers, type RequestKey, recordAnswer } from '../../store/requests.ts';
import { requestDigest } from '../idempotency.ts';
import { agentRefOf } from '../messages/agent-ref.ts';
import { priorityOf } from '../messages/priority.ts';
import { changeMessage } from '../messages/slot.ts';
import { signingSlot } from '../slot-grants.ts';

/**
 * Takes a slot, pauses a lower agent for it, or is refused by a named cap (SB-2, SB-7). A repeat
 * tells who was paused the first time, and how the agent stands now (SB-9).
 * @throws BudgetExhaustedError naming the cap and why; what reduce throws
 */
export function acquire(
  context: SpawnBudgetContext,
): Handlers<typeof SpawnBudgetService>['acquire'] {
  return async (request, call) => {
    const { tenant, runId, requestId } = request;
    assertServesTenant(call.caller, tenant);
    const event: AcquireEvent = {
      type: 'acquire',
      agent: agentRefOf(request.agent, 'agent'),
      parent: agentRefOf(request.parent, 'parent'),
      depth: request.depth,
      priority: priorityOf(request.priority),
    };
    const { instance } = event.agent;
    const digest = requestDigest(AcquireRequestSchema, request);
    const key: RequestKey = { tenant, runId, instance, rpc: 'acquire', requestId, digest };
    const { refusal, changes, slot } = await context.ledger.transaction([key], async (books) => {
      const { any, same } = await findAnswers(books.trx, key);
      if (any) await books.recall(key, [instance]);
      const answer = same ?? (await take(books, key, event));
      // What is refused has no slot, and is still to be counted: it must not undo the transaction.
      return answer.refusal === undefined
        ? { ...answer, slot: signingSlot(context, books.standing(key, instance)) }
        : { ...answer, slot: undefined };
    });
    if (refusal !== undefined) {
      call.log.info({ tenant, run_id: runId, agent: instance, cap: refusal.cap }, 'slot refused');
      throw exhausted(refusal);
    }
    return {
      ...(slot && { slot: await slot }),
      changes: changes.map(changeMessage),
    };
  };
}

async function take(books: Books, key: RequestKey, event: AcquireEvent): Promise<Answer> {
  const { outcome, changes } = books.apply(key, event);
  const answer: Answer = {
    changes: changes.filter(({ to }) => to === 'paused'),
    ...(outcome.refusal === undefined ? {} : { refusal: outcome.refusal }),
  };
  await recordAnswer(books.trx, key, answer, books.at);
  return answer;
}

function exhausted({ cap, why, used, limit, sentence }: Refusal): BudgetExhaustedError {
  return new BudgetExhaustedError({
    dimension: 'spawns',
    used,
    limit,
    message: sentence,
    metadata: { cap, why },
  });
}
