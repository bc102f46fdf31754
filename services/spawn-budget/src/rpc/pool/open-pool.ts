import { timestampMs } from '@bufbuild/protobuf/wkt';
import {
  OpenPoolRequestSchema,
  type SpawnBudgetService,
} from '@writ/contracts/writ/spawn/v1/spawn_budget_service_pb';
import { assertServesTenant } from '@writ/identity';
import { AlreadyExistsError, PreconditionError } from '@writ/kernel';
import type { Handlers } from '@writ/rpc';
import type { SpawnBudgetContext } from '../../context.ts';
import type { OpenEvent } from '../../domain/pool/events.ts';
import { openPool as newPool } from '../../domain/pool/open.ts';
import type { StoredPool } from '../../store/pool-rows.ts';
import { reusedError } from '../../store/requests.ts';
import { requestDigest } from '../idempotency.ts';
import { agentRefOf } from '../messages/agent-ref.ts';
import { budgetOf } from '../messages/budget.ts';
import { priorityOf } from '../messages/priority.ts';
import { signedSlot } from '../slot-grants.ts';

/**
 * Opens a run's pool with the root in its first slot (SB-1). A repeat tells how the root stands now.
 * @throws InvalidRequestError REQUEST_ID_REUSED; AlreadyExistsError POOL_EXISTS; PreconditionError
 *   POOL_CLOSED when the run was over before its pool was opened
 */
export function openPool(
  context: SpawnBudgetContext,
): Handlers<typeof SpawnBudgetService>['openPool'] {
  return async (request, { caller, traceparent }) => {
    const { tenant, runId, requestId, deadline } = request;
    assertServesTenant(caller, tenant);
    const event: OpenEvent = {
      root: agentRefOf(request.root, 'root'),
      priority: priorityOf(request.priority),
      budget: budgetOf(request.budget),
      ...(deadline && { deadline: timestampMs(deadline) }),
    };
    const { instance } = event.root;
    const digest = requestDigest(OpenPoolRequestSchema, request);
    const key = { tenant, runId };
    const standing = await context.ledger.transaction([key], async (books) => {
      const known = books.find(key);
      if (known !== undefined) {
        assertSame(known, requestId, digest);
        await books.recall(key, [instance]);
      } else {
        await books.open({
          ...key,
          pool: newPool(event, books.time),
          requestId,
          requestDigest: digest,
          traceparent,
          openedAt: books.at,
          closedAt: null,
        });
      }
      return books.standing(key, instance);
    });
    return { slot: await signedSlot(context, standing) };
  };
}

function assertSame(known: StoredPool, requestId: string, digest: string): void {
  if (known.pool.root === '')
    throw new PreconditionError(
      'POOL_CLOSED',
      `The run ${known.runId} is over: it was closed before its pool was opened.`,
      { run_id: known.runId },
    );
  if (known.requestDigest === digest) return;
  if (known.requestId === requestId) throw reusedError(requestId);
  throw new AlreadyExistsError('POOL_EXISTS', `The run ${known.runId} has its pool already.`, {
    run_id: known.runId,
  });
}
