import type { MessageInitShape } from '@bufbuild/protobuf';
import type { PoolSchema } from '@writ/contracts/writ/spawn/v1/pool_pb';
import { heldSlots, inLine, isHolder, type Pool } from '../../domain/pool/pool.ts';
import type { PoolKey } from '../../store/spawn-store.ts';
import { budgetMessage } from './budget.ts';
import { slotMessage } from './slot.ts';

/** The message of a pool; no grants are in it. Lists stand in the order of line, holders in that of acquisition. */
export function poolMessage(
  { tenant, runId }: PoolKey,
  pool: Pool,
): MessageInitShape<typeof PoolSchema> {
  const members = [...pool.members.values()].sort((a, b) => a.order - b.order);
  const line = inLine(pool);
  const lapsed = members.filter(
    ({ state, line: place }) => state === 'waiting' && place === undefined,
  );
  const waiting = [...line.filter(({ state }) => state === 'waiting'), ...lapsed];
  return {
    tenant,
    runId,
    budget: budgetMessage(pool.budget),
    holders: members.filter(isHolder).map((member) => slotMessage(member)),
    paused: line.filter(({ state }) => state === 'paused').map((member) => slotMessage(member)),
    waiting: waiting.map((member) => slotMessage(member)),
    held: heldSlots(pool),
    totalSpawns: pool.totalSpawns,
    totalPauses: pool.totalPauses,
    totalRefusals: pool.totalRefusals,
    closed: pool.closed,
  };
}
