import { BudgetExhaustedError } from '@writ/kernel';
import type { SpawnBudgetContext } from '../../context.ts';
import type { AcquireEvent, Refusal, ReprioritizeEvent } from '../../domain/pool/events.ts';
import type { SlotChange } from '../../domain/pool/pool.ts';
import { type Answer, findAnswers, type RequestKey, recordAnswer } from '../../store/requests.ts';
import type { PoolTransaction } from '../pool/pool-repository.ts';
import { type SlotMessage, signingSlot } from './slot-grants.ts';

/**
 * The agent's slot after a call, with the pauses that the call caused and, if it changed the priority, also the
 * resumptions.
 */
export interface ChangedSlot {
  readonly slot: SlotMessage;
  readonly changes: readonly SlotChange[];
}

/**
 * Acquires a slot, pausing an agent of lower priority if needed (SB-2, SB-7).
 * A repeated request returns the same changes and the agent's current slot (SB-9).
 * @throws BudgetExhaustedError naming the cap and the reason; InvalidRequestError REQUEST_ID_REUSED; NotFoundError
 *   POOL_NOT_FOUND; the errors of `reduce`
 */
export async function acquireSlot(
  context: SpawnBudgetContext,
  key: RequestKey,
  event: AcquireEvent,
): Promise<ChangedSlot> {
  const { instance } = event.agent;
  const { refusal, changes, slot } = await context.repository.transaction([key], async (pools) => {
    const { any, same } = await findAnswers(pools.trx, key);
    if (any) await pools.loadReleased(key, [instance]);
    const answer = same ?? (await acquire(pools, key, event));
    // A refusal is returned, not thrown, because the transaction must commit the counter of refusals.
    return answer.refusal === undefined
      ? { ...answer, slot: signingSlot(context, pools.member(key, instance)) }
      : { ...answer, slot: undefined };
  });
  if (refusal !== undefined) throw exhausted(refusal);
  return { slot: (await slot) ?? {}, changes };
}

async function acquire(
  pools: PoolTransaction,
  key: RequestKey,
  event: AcquireEvent,
): Promise<Answer> {
  const { outcome, changes } = pools.apply(key, event);
  const answer: Answer = {
    changes: changes.filter(({ to }) => to === 'paused'),
    ...(outcome.refusal && { refusal: outcome.refusal }),
  };
  await recordAnswer(pools.trx, key, answer, pools.at);
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

/**
 * Releases a slot, which goes to the first queued agent (SB-3, SB-4). For an unknown agent or run, nothing changes.
 * @throws InvalidRequestError REQUEST_ID_REUSED
 */
export async function releaseSlot(
  { repository }: SpawnBudgetContext,
  key: RequestKey,
): Promise<Answer> {
  const { instance } = key;
  return await repository.transaction([key], async (pools): Promise<Answer> => {
    if (pools.find(key) === undefined) return { changes: [], released: false };
    const { same } = await findAnswers(pools.trx, key);
    if (same !== undefined) return same;
    const { outcome, changes } = pools.apply(key, { type: 'release', instance });
    const answer: Answer = {
      released: outcome.released === true,
      changes: changes.filter(({ to }) => to === 'active'),
    };
    await recordAnswer(pools.trx, key, answer, pools.at);
    return answer;
  });
}

/**
 * Changes an agent's priority, which may pause or resume it or another agent (SB-5).
 * @throws InvalidRequestError REQUEST_ID_REUSED; NotFoundError POOL_NOT_FOUND; the errors of `reduce`
 */
export async function reprioritizeSlot(
  context: SpawnBudgetContext,
  key: RequestKey,
  event: ReprioritizeEvent,
): Promise<ChangedSlot> {
  const { changes, slot } = await context.repository.transaction([key], async (pools) => {
    const { same } = await findAnswers(pools.trx, key);
    await pools.loadReleased(key, [event.instance]);
    const answer = same ?? (await reprioritize(pools, key, event));
    return { ...answer, slot: signingSlot(context, pools.member(key, event.instance)) };
  });
  return { slot: await slot, changes };
}

async function reprioritize(
  pools: PoolTransaction,
  key: RequestKey,
  event: ReprioritizeEvent,
): Promise<Answer> {
  const { changes } = pools.apply(key, event);
  const answer = { changes: changes.filter(({ to }) => to === 'paused' || to === 'active') };
  await recordAnswer(pools.trx, key, answer, pools.at);
  return answer;
}
