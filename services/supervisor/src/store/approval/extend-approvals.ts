import { covers } from '@writ/kernel';
import type { Halt } from '../../domain/halt/halt.ts';
import { type EndedHalt, haltedMs } from '../../domain/halt/halted-time.ts';
import { type AgentRow, keyOf } from '../agent/agents.ts';
import type { SupervisorTransaction } from '../supervisor-store.ts';

/** A halt that is lifted at `at`. */
export interface LiftedHalt {
  readonly halt: Halt;
  readonly at: Date;
  /** The other halts that were in force at `at`. */
  readonly others: readonly Halt[];
}

/** Extends the pending approvals of an agent by the time for which the halt prevented their approval (SV-5). */
export async function extendApprovals(
  trx: SupervisorTransaction,
  agent: AgentRow,
  { halt, at, others }: LiftedHalt,
): Promise<void> {
  const ended: EndedHalt = {
    orderedAt: halt.orderedAt,
    liftedAt: at,
    others: others.filter(({ scope }) => covers(scope, keyOf(agent))),
  };
  const pending = await trx
    .selectFrom('approvals')
    .select(['approval_id', 'created_at', 'expires_at'])
    .where('tenant', '=', agent.tenant)
    .where('run_id', '=', agent.run_id)
    .where('instance', '=', agent.instance)
    .where('state', '=', 'pending')
    .where('expires_at', 'is not', null)
    .execute();
  for (const { approval_id, created_at, expires_at } of pending) {
    if (expires_at === null) continue;
    await trx
      .updateTable('approvals')
      .set({ expires_at: new Date(expires_at.getTime() + haltedMs(ended, created_at)) })
      .where('approval_id', '=', approval_id)
      .execute();
  }
}
