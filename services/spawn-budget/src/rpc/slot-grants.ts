import type { MessageInitShape } from '@bufbuild/protobuf';
import type { SlotSchema } from '@writ/contracts/writ/spawn/v1/pool_pb';
import { contractPriority, mintSlotGrant } from '@writ/identity';
import { GRANT_MARGIN_MS } from '../config.ts';
import type { SpawnBudgetContext } from '../context.ts';
import { mayActUntil } from '../domain/pool/pool.ts';
import type { Standing } from '../store/ledger.ts';
import { slotMessage } from './messages/slot.ts';

/**
 * Begins to sign what {@link signedSlot} does while the transaction that found the agent becomes durable;
 * whoever awaits that first gives nothing away when it fails.
 */
export function signingSlot(
  context: Pick<SpawnBudgetContext, 'config' | 'signer'>,
  standing: Standing,
): ReturnType<typeof signedSlot> {
  const signing = signedSlot(context, standing);
  // Nobody awaits it when the transaction fails, and that is then what the caller is told.
  void Promise.allSettled([signing]);
  return signing;
}

/**
 * An agent's slot with a fresh grant, when it may act (SB-4). The grant counts from the time of the
 * transaction that found the agent active, since it may have been paused while this one is signed.
 */
export async function signedSlot(
  { config, signer }: Pick<SpawnBudgetContext, 'config' | 'signer'>,
  { tenant, runId, pool, member, at }: Standing,
): Promise<MessageInitShape<typeof SlotSchema>> {
  const until = mayActUntil(pool, member, GRANT_MARGIN_MS);
  if (until === undefined) return slotMessage(member);
  const ends = Math.min(at.getTime() + config.grantTtlMs, until);
  const ttlMs = ends - signer.clock.now().getTime();
  if (ttlMs <= 0) return slotMessage(member);
  const claims = {
    tenant,
    runId,
    agentInstance: member.agent.instance,
    priority: contractPriority(member.priority),
    epoch: member.epoch,
  };
  return slotMessage(member, await mintSlotGrant(signer, claims, ttlMs));
}
