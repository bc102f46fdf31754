import type { MessageInitShape } from '@bufbuild/protobuf';
import type { SlotSchema } from '@writ/contracts/writ/spawn/v1/pool_pb';
import { contractPriority, mintSlotGrant } from '@writ/identity';
import { GRANT_MARGIN_MS } from '../../config.ts';
import type { SpawnBudgetContext } from '../../context.ts';
import { mayActUntil } from '../../domain/pool/pool.ts';
import { slotMessage } from '../../wire/slot.ts';
import type { MemberSnapshot } from '../pool/pool-repository.ts';

/** A slot as calls return it. */
export type SlotMessage = MessageInitShape<typeof SlotSchema>;

/**
 * Starts {@link signedSlot} while the transaction that read the agent commits. A caller that awaits the commit before
 * this promise returns no grant when the commit fails.
 */
export function signingSlot(
  context: Pick<SpawnBudgetContext, 'config' | 'signer'>,
  snapshot: MemberSnapshot,
): Promise<SlotMessage> {
  const signing = signedSlot(context, snapshot);
  // If the transaction fails, the caller never awaits this promise, so a rejection of it would be unhandled.
  void Promise.allSettled([signing]);
  return signing;
}

/**
 * Returns an agent's slot, with a new grant if the agent may act (SB-4). The lifetime of the grant starts at the time
 * of the transaction that found the agent active, because the agent may be paused while the grant is signed.
 */
export async function signedSlot(
  { config, signer }: Pick<SpawnBudgetContext, 'config' | 'signer'>,
  { tenant, runId, pool, member, at }: MemberSnapshot,
): Promise<SlotMessage> {
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
