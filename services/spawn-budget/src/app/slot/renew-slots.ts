import type { AgentIdentity } from '@writ/rpc';
import type { RenewEvent } from '../../domain/pool/events.ts';
import type { MemberSnapshot, PoolRepository, PoolTransaction } from '../pool/pool-repository.ts';

/** One entry of a renewal whose token was accepted. */
export interface Renewal {
  readonly agent: AgentIdentity;
  readonly event: RenewEvent;
}

/** A rejected entry, with its ErrorInfo reason; it does not affect the other entries. */
export interface RejectedRenewal {
  readonly runId: string;
  readonly refusal: string;
}

/** Renews the slots of agents of any runs in one transaction (SB-8). */
export async function renewSlots(
  repository: PoolRepository,
  renewals: readonly Renewal[],
): Promise<ReadonlyMap<Renewal, MemberSnapshot | RejectedRenewal>> {
  const runs = renewals.map(({ agent }) => agent);
  return await repository.transaction(runs, async (pools) => {
    await loadReleased(pools, renewals);
    return renewAll(pools, renewals);
  });
}

/** Loads released agents, so that the response reports them as released. */
async function loadReleased(pools: PoolTransaction, renewals: readonly Renewal[]): Promise<void> {
  const byRun = Map.groupBy(renewals, ({ agent }) => pools.find(agent));
  for (const [stored, entries] of byRun) {
    const instances = entries.map(({ event }) => event.instance);
    if (stored !== undefined) await pools.loadReleased(stored, instances);
  }
}

function renewAll(
  pools: PoolTransaction,
  renewals: readonly Renewal[],
): Map<Renewal, MemberSnapshot | RejectedRenewal> {
  const results = new Map<Renewal, MemberSnapshot | RejectedRenewal>();
  for (const entry of renewals) {
    const { agent, event } = entry;
    const known = pools.find(agent) !== undefined;
    const { renewal } = known
      ? pools.apply(agent, event).outcome
      : { renewal: 'UNKNOWN_AGENT' as const };
    if (renewal !== undefined) results.set(entry, { runId: agent.runId, refusal: renewal });
  }
  // The states are read after all entries, because a later entry may have taken the slot of an earlier entry.
  for (const entry of renewals) {
    const { agent, event } = entry;
    if (!results.has(entry)) results.set(entry, pools.member(agent, event.instance));
  }
  return results;
}
