import { type FreezeInForce, freezesOver, frozenError, purges } from '@writ/freeze';
import { admitEpoch } from '@writ/identity';
import {
  type AgentKey,
  DeadlineError,
  NotFoundError,
  PreconditionError,
  scopeKey,
} from '@writ/kernel';
import type { MeterReader, MeterTransaction } from './meter-store.ts';
import { findTab, raiseEpoch, type StoredTab } from './tabs.ts';

/**
 * Returns the tab of an agent.
 * @throws NotFoundError TAB_NOT_FOUND
 */
export async function requireTab(db: MeterReader, key: AgentKey): Promise<StoredTab> {
  const tab = await findTab(db, key);
  if (tab !== undefined) return tab;
  throw new NotFoundError(
    'TAB_NOT_FOUND',
    `Agent ${key.instance} of run ${key.runId} has no tab.`,
    { run_id: key.runId, agent_instance: key.instance },
  );
}

/**
 * Checks that the agent is not frozen, its tab is open and its deadline has not passed.
 * @param freezes the freezes that cover the agent, as read in this transaction
 * @throws PreconditionError HALTED, FROZEN, TAB_CLOSED; DeadlineError DEADLINE_EXCEEDED
 */
export function requireSpendable(
  tab: StoredTab,
  [freeze]: readonly FreezeInForce[],
  at: Date,
): void {
  if (freeze !== undefined) throw frozenError(freeze);
  if (tab.state === 'closed') {
    throw new PreconditionError('TAB_CLOSED', 'The tab is closed and accepts no calls.', {
      run_id: tab.runId,
      agent_instance: tab.instance,
    });
  }
  if (tab.deadline !== undefined && tab.deadline <= at) throw deadlineError(tab);
}

/** Returns the error for a tab whose deadline has passed. */
export function deadlineError({ runId, instance }: AgentKey): DeadlineError {
  return new DeadlineError('DEADLINE_EXCEEDED', 'The deadline of the run has passed.', {
    run_id: runId,
    agent_instance: instance,
  });
}

/**
 * Stores the lease epoch of the caller when it is higher than the stored epoch (RT-2).
 * @throws PreconditionError STALE_EPOCH
 */
export async function admitCaller(
  trx: MeterTransaction,
  tab: StoredTab,
  epoch: bigint,
): Promise<void> {
  if (admitEpoch(tab.epoch, epoch) !== tab.epoch) await raiseEpoch(trx, tab, epoch);
}

/** Whether the run of a tab has ended and the answers of the tab are not kept (SUP-4). */
export async function isPurged(
  db: MeterReader,
  tab: Pick<StoredTab, 'tenant' | 'runId' | 'instance' | 'retention'>,
): Promise<boolean> {
  const run = scopeKey({ tenant: tab.tenant, runId: tab.runId });
  const freezes = await freezesOver(db, tab);
  const endings = freezes.filter(({ cause, scope }) => cause === 'end' && scope === run);
  return endings.length > 0 && (tab.retention !== 'permanent' || endings.some(purges));
}
