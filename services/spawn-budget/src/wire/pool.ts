import type { MessageInitShape } from '@bufbuild/protobuf';
import type { PoolSchema } from '@writ/contracts/writ/spawn/v1/pool_pb';
import type { RunKey } from '@writ/kernel';
import { heldSlots, isHolder, type Pool } from '../domain/pool/pool.ts';
import { queuedMembers } from '../domain/pool/queue.ts';
import { slotMessage } from './slot.ts';

/**
 * Returns the message of a pool without grants. Holders are in order of acquisition, paused and waiting agents in queue
 * order, followed by waiting agents that are not queued.
 */
export function poolMessage(
  { tenant, runId }: RunKey,
  pool: Pool,
): MessageInitShape<typeof PoolSchema> {
  const members = [...pool.members.values()].sort((a, b) => a.order - b.order);
  const queued = queuedMembers(pool);
  const unqueued = members.filter(
    ({ state, queuePosition }) => state === 'waiting' && queuePosition === undefined,
  );
  const waiting = [...queued.filter(({ state }) => state === 'waiting'), ...unqueued];
  return {
    tenant,
    runId,
    budget: pool.budget,
    holders: members.filter(isHolder).map((member) => slotMessage(member)),
    paused: queued.filter(({ state }) => state === 'paused').map((member) => slotMessage(member)),
    waiting: waiting.map((member) => slotMessage(member)),
    held: heldSlots(pool),
    totalSpawns: pool.totalSpawns,
    totalPauses: pool.totalPauses,
    totalRefusals: pool.totalRefusals,
    closed: pool.closed,
  };
}
