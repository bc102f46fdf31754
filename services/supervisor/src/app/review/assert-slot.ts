import { PreconditionError } from '@writ/kernel';
import type { CallContext } from '@writ/rpc';
import { pauseHolds } from '../../domain/slot/pause.ts';
import { loadAgent } from '../../store/agent/agents.ts';
import { noteSlotChange, slotOf } from '../../store/agent/pauses.ts';
import type { SupervisorTransaction } from '../../store/supervisor-store.ts';
import type { Acting } from './review-subject.ts';

/**
 * Refuses an agent that is paused, at once: its grant may still be good for seconds (SB-4). One whose
 * grant was signed after the pause has its slot back. Returns the agent as it stands then.
 * @throws PreconditionError AGENT_PAUSED
 */
export async function assertHoldsSlot(
  trx: SupervisorTransaction,
  acting: Acting,
  { caller }: Pick<CallContext, 'caller'>,
  now: Date,
): Promise<Acting> {
  const { agent, key } = acting;
  if (agent.paused_since === null) return acting;
  if (pauseHolds(slotOf(agent), caller.slotGrant?.expireTime)) {
    throw new PreconditionError(
      'AGENT_PAUSED',
      `Agent ${agent.instance} of run ${agent.run_id} is paused: another agent has its slot. It may act when it has one again, or end with a partial final.`,
      { run_id: agent.run_id, agent: agent.instance },
    );
  }
  await noteSlotChange(trx, key, { change: 'resumed', at: now }, now);
  return { ...acting, agent: await loadAgent(trx, key) };
}
